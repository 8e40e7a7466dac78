/** What cabinets show: the document, the merged listing, and the list of one's own. */
import type { CabinetView as Cabinet } from "../../actors/cabinet/protocol.ts"
import type { Feed } from "../feeds.ts"
import { form } from "../html/forms.ts"
import type { Link } from "../html/layout.ts"
import { liveScriptPath } from "../html/live-script.ts"
import { entryElement } from "../mailboxes/listing.ts"
import { mailboxRefNamed } from "../mailboxes/reader.ts"
import { summaryOf } from "../mailboxes/summary.ts"
import type { ResourceView } from "../representations.ts"
import { type Service, uri } from "../service.ts"
import { type Element, element, escapeAttribute, writeElement, xmlDeclaration } from "../xml.ts"
import type { MergedEntry, MergedPage } from "./merge.ts"
import { cabinetForms, cabinetPage, makeForm, ownPage } from "./pages.ts"

export const collectionPath = "/cabinets"
export const cabinetPath = (id: string): string => `${collectionPath}/${id}`

const collectionLink: Link = { rel: "collection", href: collectionPath, title: "Your cabinets" }

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
    { href: uri(service, cabinetPath(id)) },
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
  const href = uri(service, path)
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
  next: ReadonlyArray<Link>
): ResourceView => ({
  title: "Your cabinets",
  tree: element(
    "cabinets",
    {},
    ...listed.map(({ cabinet, id }) =>
      element("cabinet", {
        href: uri(service, cabinetPath(id)),
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
  forms: form(makeForm(service)),
  links: next,
  script: liveScriptPath
})
