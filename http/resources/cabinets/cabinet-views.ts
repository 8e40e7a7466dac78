/** What cabinets show: the document, the merged listing, and the list of one's own. */
import type { CabinetView as Cabinet } from "../../../actors/cabinet/index.ts"
import { badge, type Control, emptyState, type Html, html, type HtmlForm, link, livePart,
  liveScriptPath, liveState, nothing, type PageLink, renderForm,
  table } from "../../formats/html/index.ts"
import type { Feed, ResourceView } from "../../formats/index.ts"
import { type Element, element, escapeAttribute, writeElement,
  xmlDeclaration } from "../../formats/xml/index.ts"
import { containsCharsMax, titleCharsMax } from "../../limits.ts"
import { absoluteUri, type Service } from "../../pipeline/index.ts"
import { entryElement, entryItem, mailboxRefNamed, summaryOf } from "../mailboxes/index.ts"
import type { MergedEntry, MergedPage } from "./cabinet-merge.ts"

const mergedItem = ({ entry, place }: MergedEntry): Html =>
  entryItem(summaryOf(place, entry), html` · in ${link(place.href, place.name)}`)

const controls = (
  service: Service,
  cabinet?: Pick<Cabinet, "title" | "mailboxes" | "query">
): ReadonlyArray<Control> => [
  { name: "title", label: "Title", value: cabinet?.title ?? "", maxlength: titleCharsMax },
  {
    name: "mailbox",
    label: "Mailboxes",
    type: "textarea",
    required: true,
    value: (cabinet?.mailboxes ?? [])
      .map(({ name }) => mailboxRefNamed(service, name).href)
      .join("\n"),
    hint: "An address a line: your own mailboxes, or shared addresses that you were given. "
      + "A shared address is not shown again; it stays good as long as its mailbox is listed."
  },
  {
    name: "contains",
    label: "Only notifications with this text",
    type: "search",
    value: cabinet?.query?.contains ?? "",
    maxlength: containsCharsMax
  },
  {
    name: "since",
    label: "Only notifications since",
    value: cabinet?.query?.since ?? "",
    hint: "A time such as 2030-01-31T00:00:00Z."
  }
]

/** The form that makes a cabinet; `mailboxes` is what it begins with. */
export const makeForm = (service: Service, mailboxes = ""): HtmlForm => ({
  id: "make",
  action: "/cabinets",
  legend: "Make a cabinet",
  controls: controls(service).map((control) =>
    control.name === "mailbox" ? { ...control, value: mailboxes } : control
  ),
  submit: "Make"
})

/** The form that changes one. */
export const changeForm = (service: Service, path: string, cabinet?: Cabinet): HtmlForm => ({
  id: "change",
  action: path,
  legend: "Change this cabinet",
  controls: controls(service, cabinet),
  submit: "Change"
})

/** What its owner sees: the notifications of all mailboxes, oldest first. */
export const cabinetPage = (page: MergedPage): Html =>
  html`${livePart("entries", cabinetParts(page))}${liveState}`

const cabinetParts = (page: MergedPage): Html =>
  html`<h2>Mailboxes</h2>
<ul>${
    page.mailboxes.map(({ isReadable, place }) =>
      html`<li>${link(place.href)}${
        isReadable ? nothing : html` ${badge("bad", "✗ cannot be read")}`
      }</li>
`
    )
  }</ul>
<h2>Notifications</h2>
${
    page.entries.length > 0
      ? html`<ol class="entries">${page.entries.map(mergedItem)}</ol>`
      : page.more
      ? emptyState("There is nothing on this page: see the next one.")
      : emptyState("There is nothing here.", "What comes into its mailboxes is shown here, too.")
  }`

/** What follows: the forms. */
export const cabinetForms = (service: Service, path: string, cabinet: Cabinet): Html =>
  html`${renderForm(changeForm(service, path, cabinet))}${
    renderForm({
      id: "delete",
      action: path,
      legend: "Remove this cabinet; its mailboxes stay as they are",
      controls: [{ name: "method", label: "", type: "hidden", value: "delete" }],
      submit: "Remove",
      tone: "danger"
    })
  }`

/** One of the caller's own cabinets. */
export interface OwnCabinet {
  readonly path: string
  readonly title: string
  readonly mailboxes: number
}

/** The caller's own cabinets. */
export const ownPage = (own: ReadonlyArray<OwnCabinet>): Html =>
  html`${livePart("own", ownTable(own))}${liveState}`

const ownTable = (own: ReadonlyArray<OwnCabinet>): Html =>
  own.length === 0
    ? emptyState("You have none yet.", "A cabinet shows several mailboxes as one: make it below.")
    : table(
      "Your cabinets",
      ["Cabinet", { number: "Mailboxes" }],
      own.map(({ mailboxes, path, title }) =>
        html`<tr><td>${link(path, title)}</td><td class="num">${mailboxes}</td></tr>
`
      )
    )

/* The pages of cabinets: to read one, to change it, to make one; they work without a script. */

export const collectionPath = "/cabinets"

export const cabinetPath = (id: string): string => `${collectionPath}/${id}`

const collectionLink: PageLink = { rel: "collection", href: collectionPath, title: "Your cabinets" }

const titleOf = ({ title }: Cabinet): string => title ?? "A cabinet"

const queryElements = ({ query }: Cabinet): ReadonlyArray<Element> =>
  query === undefined
    ? []
    : [element("query", { contains: query.contains, since: query.since })]

/** The cabinet's document: what its owner says of it, secrets aside. */
export const cabinetDocument = (service: Service, id: string, cabinet: Cabinet): ResourceView => ({
  title: titleOf(cabinet),
  tree: element(
    "cabinet",
    { href: absoluteUri(service, cabinetPath(id)) },
    element("title", {}, cabinet.title),
    ...cabinet.mailboxes.map(({ name }) =>
      element("mailbox", { href: mailboxRefNamed(service, name).href })
    ),
    ...queryElements(cabinet)
  ),
  links: [
    { rel: "self", href: cabinetPath(id), title: "The notifications in it" },
    collectionLink
  ]
})

/** A notification as its mailbox shows it, and which one that is. */
const mergedElement = ({ entry, place }: MergedEntry): Element => {
  const notification = entryElement(place, entry)
  return { ...notification, attributes: { ...notification.attributes, mailbox: place.href } }
}

const mergedXml = ({ entry, place }: MergedEntry): string => {
  const href = escapeAttribute(place.href)
  return `<notification href="${href}/notifications/${entry.id}" received="${entry.received}" ` +
    `mailbox="${href}">${entry.fragment}</notification>`
}

const feedOf = (
  href: string,
  title: string,
  page: MergedPage,
  next: string | undefined
): Feed => ({
  href,
  title,
  updated: new Date(page.atMs).toISOString(),
  next,
  entries: page.entries.map(({ entry, place }) => {
    const { description, from, href: id, received, url } = summaryOf(place, entry)
    return { id, title: description, received, url, author: from }
  })
})

/** The view of a page: its XML is a join of stored fragments, all else is built when wanted. */
export const pageView = (
  service: Service,
  id: string,
  cabinet: Cabinet,
  page: MergedPage,
  limit: number
): ResourceView => {
  const path = cabinetPath(id)
  const href = absoluteUri(service, path)
  const title = titleOf(cabinet)
  const next = page.more
    ? `${href}?since=${encodeURIComponent(page.time)}&limit=${limit}`
    : undefined
  const root = { href, title: cabinet.title ?? "", time: page.time }
  const parts = [
    ...page.mailboxes.map(({ isReadable, place }) =>
      element("mailbox", { href: place.href, readable: String(isReadable) })
    ),
    ...queryElements(cabinet)
  ]
  return {
    title,
    xml: `${xmlDeclaration}<cabinet href="${escapeAttribute(href)}" ` +
      `title="${escapeAttribute(root.title)}" time="${page.time}">` +
      `${parts.map(writeElement).join("")}${page.entries.map(mergedXml).join("")}</cabinet>`,
    tree: () => element("cabinet", root, ...parts, ...page.entries.map(mergedElement)),
    links: [
      collectionLink,
      ...next === undefined ? [] : [{ rel: "next", href: next, title: "Later notifications" }],
      { rel: "alternate", href, type: "application/atom+xml" },
      { rel: "alternate", href, type: "application/rss+xml" }
    ],
    body: () => cabinetPage(page),
    forms: () => cabinetForms(service, path, cabinet),
    feed: () => feedOf(href, title, page, next),
    script: liveScriptPath
  }
}

/** One line of the list. */
export interface ListedCabinetRow {
  readonly id: string
  readonly cabinet: Cabinet
}

const createdOf = ({ createdAtMs }: Cabinet): string => new Date(createdAtMs).toISOString()

/** The list of one's own. */
export const listingView = (
  service: Service,
  listed: ReadonlyArray<ListedCabinetRow>,
  next: ReadonlyArray<PageLink>
): ResourceView => ({
  title: "Your cabinets",
  tree: element(
    "cabinets",
    {},
    ...listed.map(({ cabinet, id }) =>
      element("cabinet", {
        href: absoluteUri(service, cabinetPath(id)),
        title: cabinet.title ?? "",
        created: createdOf(cabinet),
        mailboxes: cabinet.mailboxes.length
      })
    )
  ),
  body: () =>
    ownPage(listed.map(({ cabinet, id }) => ({
      path: cabinetPath(id),
      title: titleOf(cabinet),
      mailboxes: cabinet.mailboxes.length
    }))),
  forms: renderForm(makeForm(service)),
  links: next,
  script: liveScriptPath
})
