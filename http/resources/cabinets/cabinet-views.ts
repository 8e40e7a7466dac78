/**
 * The views of cabinets: the document, the merged listing, and the list of the caller's cabinets.
 */
import type { CabinetView } from "../../../actors/cabinet/index.ts"
import { badge, type Control, deleteForm, emptyState, type Html, html, type HtmlForm, link,
  livePart, liveScriptPath, liveState, namedLink, nothing, type PageLink, renderForm, table,
  versionControl } from "../../formats/html/index.ts"
import type { Feed, ResourceView } from "../../formats/index.ts"
import { type Element, element, escapeAttribute, writeElement,
  xmlDeclaration } from "../../formats/xml/index.ts"
import { containsCharsMax, titleCharsMax } from "../../limits.ts"
import type { ListedResource } from "../../newest-first-index.ts"
import { absoluteUri, type Service } from "../../pipeline/index.ts"
import { discardedNotice, entryItem, firstPageLink, mailboxRefNamed,
  summaryOf } from "../mailboxes/index.ts"
import { hasDiscarded, type MergedEntry, type MergedPage } from "./cabinet-merge.ts"

export const collectionPath = "/cabinets"

export const cabinetPath = (id: string): string => `${collectionPath}/${id}`

const collectionLink: PageLink = { rel: "collection", href: collectionPath, title: "Your cabinets" }

const titleOf = ({ title }: CabinetView): string => title ?? "A cabinet"

/* The pages, which work without a script. */

/** `hrefs` are the addresses of mailboxes, one a line. */
const controls = (hrefs: string, cabinet?: CabinetView): ReadonlyArray<Control> => [
  { name: "title", label: "Title", value: cabinet?.title ?? "", maxlength: titleCharsMax },
  {
    name: "mailbox",
    label: "Mailboxes",
    type: "textarea",
    required: true,
    value: hrefs,
    hint: "One address a line: your own mailboxes, or shared addresses that you received. "
      + "A shared address is not shown again; it stays valid while its mailbox is listed."
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

/** The form that creates a cabinet; `hrefs` are the addresses of mailboxes, one a line. */
export const createForm = (hrefs = ""): HtmlForm => ({
  id: "make",
  action: collectionPath,
  legend: "Create a cabinet",
  controls: controls(hrefs),
  submit: "Create"
})

/** The form that replaces the contents of a cabinet. */
export const replaceForm = (service: Service, path: string, cabinet?: CabinetView): HtmlForm => ({
  id: "change",
  action: path,
  legend: "Change this cabinet",
  controls: [
    versionControl(cabinet?.version),
    ...controls(
      (cabinet?.mailboxes ?? []).map(({ name }) => mailboxRefNamed(service, name).href).join("\n"),
      cabinet
    )
  ],
  submit: "Change"
})

const entriesOf = (page: MergedPage): Html => {
  if (page.entries.length > 0) {
    return html`<ol class="entries">${
      page.entries.map(({ entry, mailbox }) =>
        entryItem(summaryOf(mailbox, entry), html` · in ${link(mailbox.href, mailbox.name)}`)
      )
    }</ol>`
  }
  return page.hasMore
    ? emptyState("This page is empty: see the next one.")
    : emptyState("There is nothing here.", "Notifications in its mailboxes appear here.")
}

const cabinetPage = (page: MergedPage): Html => {
  const mailboxes = page.mailboxes.map(({ isDiscarded, isReadable, mailbox }) =>
    html`<li>${namedLink(mailbox.href, mailbox.name)}${
      isReadable ? nothing : html` ${badge("bad", "✗ cannot be read")}`
    }${isDiscarded ? html` ${badge("wait", "earlier notifications removed")}` : nothing}</li>
`
  )
  const content = html`<h2>Mailboxes</h2>
<ul>${mailboxes}</ul>
<h2>Notifications</h2>
${
    hasDiscarded(page) ?
      html`<p class="quiet">${discardedNotice}</p>
` :
      nothing
  }${entriesOf(page)}`
  return html`${livePart("entries", content)}${liveState}`
}

/* The documents. */

const queryElements = ({ query }: CabinetView): ReadonlyArray<Element> =>
  query === undefined ? [] : [element("query", { contains: query.contains, since: query.since })]

/** The document of a cabinet, without secrets. */
export const cabinetDocument = (
  service: Service,
  id: string,
  cabinet: CabinetView
): ResourceView => ({
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

/** A notification with the mailbox that has it. */
const mergedXml = ({ entry, mailbox }: MergedEntry): string => {
  const href = escapeAttribute(mailbox.href)
  return `<notification href="${href}/notifications/${entry.id}" received="${entry.received}" ` +
    `mailbox="${href}">${entry.fragment}</notification>`
}

const feedOf = (href: string, title: string, page: MergedPage): Feed => ({
  href,
  title,
  notice: hasDiscarded(page) ? discardedNotice : undefined,
  updated: new Date(page.atMs).toISOString(),
  entries: page.entries.map(({ entry, mailbox }) => {
    const { description, from, href: id, received, url } = summaryOf(mailbox, entry)
    return { id, title: description, received, url, author: from }
  })
})

/** The view of a page: its XML joins stored fragments; other formats are built when requested. */
export const pageView = (
  service: Service,
  id: string,
  cabinet: CabinetView,
  page: MergedPage,
  limit: number
): ResourceView => {
  const path = cabinetPath(id)
  const href = absoluteUri(service, path)
  const title = titleOf(cabinet)
  const next = page.hasMore
    ? `${href}?since=${encodeURIComponent(page.time)}&limit=${limit}`
    : undefined
  const parts = [
    ...page.mailboxes.map(({ isDiscarded, isReadable, mailbox }) =>
      element("mailbox", {
        href: mailbox.href,
        readable: String(isReadable),
        discarded: isDiscarded ? "true" : undefined
      })
    ),
    ...queryElements(cabinet)
  ]
  return {
    title,
    xml: `${xmlDeclaration}<cabinet href="${escapeAttribute(href)}" ` +
      `title="${escapeAttribute(cabinet.title ?? "")}" time="${page.time}">` +
      `${parts.map(writeElement).join("")}${page.entries.map(mergedXml).join("")}</cabinet>`,
    links: [
      collectionLink,
      ...hasDiscarded(page) ? [firstPageLink(href, limit)] : [],
      ...next === undefined ? [] : [{ rel: "next", href: next, title: "Later notifications" }]
    ],
    body: () => cabinetPage(page),
    forms: () =>
      html`${renderForm(replaceForm(service, path, cabinet))}${
        deleteForm(path, "Remove this cabinet; its mailboxes stay as they are")
      }`,
    feed: () => feedOf(href, title, page),
    scripts: [liveScriptPath]
  }
}

const listingTable = (listed: ReadonlyArray<ListedResource<CabinetView>>): Html =>
  listed.length === 0
    ? emptyState(
      "You have no cabinet yet.",
      "A cabinet shows several mailboxes as one: create it below."
    )
    : table(
      "Your cabinets",
      ["Cabinet", { number: "Mailboxes" }],
      listed.map(({ id, view: cabinet }) =>
        html`<tr><td>${
          link(cabinetPath(id), titleOf(cabinet))
        }</td><td class="num">${cabinet.mailboxes.length}</td></tr>
`
      )
    )

/** The list of the caller's cabinets. */
export const listingView = (
  service: Service,
  listed: ReadonlyArray<ListedResource<CabinetView>>,
  next: ReadonlyArray<PageLink>
): ResourceView => ({
  title: "Your cabinets",
  tree: element(
    "cabinets",
    {},
    ...listed.map(({ id, view: cabinet }) =>
      element("cabinet", {
        href: absoluteUri(service, cabinetPath(id)),
        title: cabinet.title ?? "",
        created: new Date(cabinet.createdAtMs).toISOString(),
        mailboxes: cabinet.mailboxes.length
      })
    )
  ),
  body: () => html`${livePart("own", listingTable(listed))}${liveState}`,
  forms: renderForm(createForm()),
  links: next,
  scripts: [liveScriptPath]
})
