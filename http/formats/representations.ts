/**
 * One view of a resource, served as XML, HTML, plain text or JSON, and where it fits as a
 * notification (`text/xml+rss`) or a feed. Handlers make views; this file makes bytes.
 */
import { hash } from "node:crypto"
import { type Feed, toAtom, toRss } from "./feeds.ts"
import { type Html, type PageLink, renderElement, renderPage } from "./html/index.ts"
import type { MediaType } from "./negotiation.ts"
import { toText } from "./plain-text.ts"
import { type Element, toJson, writeDocument } from "./xml/index.ts"

/**
 * What a resource shows. `tree` may be lazy: it is only built for HTML, text and JSON when `xml`
 * (the whole document, already written, as from stored fragments) is there.
 */
export interface ResourceView {
  readonly title: string
  readonly tree: Element | (() => Element)
  readonly xml?: string | undefined
  readonly links?: ReadonlyArray<PageLink> | undefined
  /** Replaces the generic rendering of the tree in the HTML page. */
  readonly body?: Html | (() => Html) | undefined
  /** Follows the rendering and the page's links: forms, mostly. */
  readonly forms?: Html | (() => Html) | undefined
  /** Path of this origin's script that keeps the page up to date. */
  readonly script?: string | undefined
  readonly feed?: (() => Feed) | undefined
  /** The same as JSON-LD. */
  readonly linkedData?: (() => string) | undefined
}

/** What every resource is served as; the first is the default. */
export const standardTypes: ReadonlyArray<MediaType> = [
  "application/xml",
  "text/html",
  "application/json",
  "text/plain",
  "text/xml"
]

/** What a notification is served as. */
export const notificationTypes: ReadonlyArray<MediaType> = [...standardTypes, "text/xml+rss"]

/** What a listing of notifications is served as. */
export const feedTypes: ReadonlyArray<MediaType> = [
  ...standardTypes,
  "application/atom+xml",
  "application/rss+xml"
]

/** Where a view has it; JSON-LD has no charset parameter. */
export const linkedDataType: MediaType = "application/ld+json"

const textual = (type: MediaType): string => `${type}; charset=utf-8`

/** The Content-Type of each type that is served; JSON has no charset parameter (RFC 8259 §11). */
const contentTypes: ReadonlyMap<MediaType, string> = new Map([
  ...notificationTypes.map((type): [MediaType, string] => [type, textual(type)]),
  ["application/atom+xml", textual("application/atom+xml")],
  ["application/rss+xml", textual("application/rss+xml")],
  ["application/json", "application/json"],
  [linkedDataType, linkedDataType]
])

export const contentTypeOf = (type: MediaType): string => contentTypes.get(type) ?? textual(type)

const treeOf = (view: ResourceView): Element =>
  typeof view.tree === "function" ? view.tree() : view.tree

const bodyOf = (view: ResourceView): Html => {
  if (view.body === undefined) return renderElement(treeOf(view))
  return typeof view.body === "function" ? view.body() : view.body
}

const toHtml = (view: ResourceView, path: string | undefined): string =>
  renderPage({
    title: view.title,
    path,
    body: bodyOf(view),
    forms: typeof view.forms === "function" ? view.forms() : view.forms,
    links: view.links ?? [],
    script: view.script
  })

/**
 * The body of a view as text of one of the types offered for it; a feed type needs `feed`. The
 * page of a view says by `path`, the request's, where in the service it is.
 */
export const render = (view: ResourceView, type: MediaType, path?: string): string => {
  switch (type) {
    case "text/html":
      return toHtml(view, path)
    case "application/json":
      return `${JSON.stringify(toJson(treeOf(view)))}\n`
    case "text/plain":
      return toText(treeOf(view))
    case "application/atom+xml":
    case "application/rss+xml":
      if (view.feed === undefined) throw new Error(`this resource is not served as ${type}`)
      return type === "application/atom+xml" ? toAtom(view.feed()) : toRss(view.feed())
    case linkedDataType:
      if (view.linkedData === undefined) throw new Error(`this resource is not served as ${type}`)
      return view.linkedData()
    default:
      return view.xml ?? writeDocument(treeOf(view))
  }
}

/** A body with its type and its strong entity tag. */
export interface Representation {
  readonly bytes: Uint8Array
  readonly contentType: string
  readonly etag: string
}

/** 128 bits of SHA-256 in base64url, quoted (RFC 9110 §8.8.3): each representation has its own. */
export const entityTag = (bytes: Uint8Array): string =>
  `"${hash("sha256", bytes, "base64url").slice(0, 22)}"`

/** The bytes of a view, their type and entity tag. */
export const represent = (view: ResourceView, type: MediaType, path?: string): Representation => {
  const bytes = Buffer.from(render(view, type, path))
  return { bytes, contentType: contentTypeOf(type), etag: entityTag(bytes) }
}

const notInLink = /[\u0000-\u0020<>"\u007f-\uffff]/g

/** The value of a Link header (RFC 8288 §3), or `undefined` when there is none. */
export const linkHeader = (links: ReadonlyArray<PageLink>): string | undefined =>
  links.length === 0
    ? undefined
    : links.map((link) => {
      const href = link.href.replace(notInLink, encodeURIComponent)
      const type = link.type === undefined ? "" : `; type="${link.type}"`
      return `<${href}>; rel="${link.rel}"${type}`
    }).join(", ")
