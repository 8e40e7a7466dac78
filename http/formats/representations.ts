/**
 * Renders one view of a resource as XML, HTML, text or JSON. Some resources also offer it as a
 * notification (`text/xml+rss`), a feed or JSON-LD. Handlers build views; this file makes bytes.
 */
import { hash } from "node:crypto"
import { type Feed, toAtom, toRss } from "./feeds.ts"
import { type Html, type PageLink, type PageReader, renderElement,
  renderPage } from "./html/index.ts"
import type { MediaType } from "./negotiation.ts"
import { type Element, parseFragment, toJson, writeDocument, xmlDeclaration } from "./xml/index.ts"

/**
 * The content of an answer: its document is `tree`, or `xml` with the XML declaration. A view
 * without both is served as HTML only.
 */
export interface ResourceView {
  readonly title: string
  readonly tree?: Element | (() => Element)
  readonly xml?: string | undefined
  readonly links?: ReadonlyArray<PageLink> | undefined
  /** Replaces the generic rendering of the tree in the HTML page. */
  readonly body?: Html | (() => Html) | undefined
  /** The forms of the page, after its body and its links. */
  readonly forms?: Html | (() => Html) | undefined
  /** The paths of the page's own scripts, in their order. */
  readonly scripts?: ReadonlyArray<string>
  readonly feed?: (() => Feed) | undefined
  /** The JSON-LD form. */
  readonly linkedData?: (() => LinkedData) | undefined
}

/** A document of JSON-LD and its Content-Type, which may have a profile (RFC 6906). */
export interface LinkedData {
  readonly text: string
  readonly type: string
}

/** The types of every resource; the first is the default. */
export const standardTypes: ReadonlyArray<MediaType> = [
  "application/xml",
  "text/html",
  "application/json",
  "text/plain",
  "text/xml"
]

/** The types of a notification. */
export const notificationTypes: ReadonlyArray<MediaType> = [...standardTypes, "text/xml+rss"]

/** The types of a listing of notifications. */
export const feedTypes: ReadonlyArray<MediaType> = [
  ...standardTypes,
  "application/atom+xml",
  "application/rss+xml"
]

export const linkedDataType: MediaType = "application/ld+json"

const withCharset = (type: MediaType): string => `${type}; charset=utf-8`

/** The Content-Type of each type; JSON and JSON-LD have no charset (RFC 8259 §11). */
const contentTypes: ReadonlyMap<MediaType, string> = new Map([
  ...notificationTypes.map((type): [MediaType, string] => [type, withCharset(type)]),
  ["application/atom+xml", withCharset("application/atom+xml")],
  ["application/rss+xml", withCharset("application/rss+xml")],
  ["application/json", "application/json"],
  [linkedDataType, linkedDataType]
])

export const contentTypeOf = (type: MediaType): string =>
  contentTypes.get(type) ?? withCharset(type)

const treeOf = ({ title, tree, xml = "" }: ResourceView): Element => {
  if (tree !== undefined) return typeof tree === "function" ? tree() : tree
  const [root] = parseFragment(xml.slice(xmlDeclaration.length))
  if (root === undefined || typeof root === "string") {
    throw new Error(`the page "${title}" is served as HTML only`)
  }
  return root
}

const bodyOf = (view: ResourceView): Html => {
  if (view.body === undefined) return renderElement(treeOf(view))
  return typeof view.body === "function" ? view.body() : view.body
}

/** Where a view is shown. */
export interface RenderContext {
  /** The path of the request: the navigation of a page highlights it. */
  readonly path?: string
  readonly links: ReadonlyArray<PageLink>
  /** Who reads the page. */
  readonly reader?: PageReader
}

const toHtml = (view: ResourceView, { links, path, reader }: RenderContext): string =>
  renderPage({
    title: view.title,
    path,
    reader,
    body: bodyOf(view),
    forms: typeof view.forms === "function" ? view.forms() : view.forms,
    links,
    scripts: view.scripts ?? []
  })

const indent = "  "

const writeNode = (node: Element, depth: number, lines: Array<string>): void => {
  const margin = indent.repeat(depth)
  const text = node.children.filter((child) => typeof child === "string").join("").trim()
  const indented = text.includes("\n") ? text.replace(/\r?\n/g, `\n${margin}${indent}`) : text
  lines.push(`${margin}${node.name}:${indented === "" ? "" : ` ${indented}`}`)
  for (const key in node.attributes) {
    if (!key.startsWith("xmlns")) lines.push(`${margin}${indent}${key}: ${node.attributes[key]}`)
  }
  for (const child of node.children) {
    if (typeof child !== "string") writeNode(child, depth + 1, lines)
  }
}

/** A document as plain text: one line for each value, indented by depth. */
const toText = (root: Element): string => {
  const lines: Array<string> = []
  writeNode(root, 0, lines)
  return `${lines.join("\n")}\n`
}

const linkedDataIn = ({ linkedData, title }: ResourceView): LinkedData => {
  if (linkedData === undefined) throw new Error(`"${title}" is not served as JSON-LD`)
  return linkedData()
}

/** The text of a view in one of its offered types; a feed type needs `feed`. */
export const render = (
  view: ResourceView,
  type: MediaType,
  context: RenderContext = { links: view.links ?? [] }
): string => {
  switch (type) {
    case "text/html":
      return toHtml(view, context)
    case "application/json":
      return `${JSON.stringify(toJson(treeOf(view)))}\n`
    case "text/plain":
      return toText(treeOf(view))
    case "application/atom+xml":
    case "application/rss+xml":
      if (view.feed === undefined) throw new Error(`this resource is not served as ${type}`)
      return type === "application/atom+xml"
        ? toAtom(view.feed(), context.links)
        : toRss(view.feed(), context.links)
    case linkedDataType:
      return linkedDataIn(view).text
    default:
      return view.xml ?? writeDocument(treeOf(view))
  }
}

/** The types whose text depends on the context, as it has the links. */
export const contextTypes: ReadonlyArray<MediaType> = [
  "text/html",
  "application/atom+xml",
  "application/rss+xml"
]

/** A body with its type and its strong entity tag. */
export interface Representation {
  readonly bytes: Uint8Array
  readonly contentType: string
  readonly etag: string
}

/** The types whose bytes are those of `application/xml`. */
const sameAsXml: ReadonlyArray<MediaType> = ["text/xml", "text/xml+rss"]

/**
 * A strong entity tag (RFC 9110 §8.8.3): 128 bits of the SHA-256 of the representation. Two types
 * of the same bytes are two representations, with two tags.
 */
export const entityTag = (bytes: Uint8Array, type?: MediaType): string => {
  const hashed = type !== undefined && sameAsXml.includes(type)
    ? Buffer.concat([Buffer.from(`${type}\n`), bytes])
    : bytes
  return `"${hash("sha256", hashed, "base64url").slice(0, 22)}"`
}

/** Whether a field of a request names a tag of the form of `entityTag`. */
export const hasEntityTag = (field: string | undefined): boolean =>
  field !== undefined && /"[\w-]{22}"/.test(field)

/** The bytes of a view, their type and entity tag. */
export const represent = (
  view: ResourceView,
  type: MediaType,
  context?: RenderContext
): Representation => {
  const own = type === linkedDataType ? linkedDataIn(view) : undefined
  const bytes = Buffer.from(own?.text ?? render(view, type, context))
  return { bytes, contentType: own?.type ?? contentTypeOf(type), etag: entityTag(bytes, type) }
}

const notInLink = /[\u0000-\u0020<>"\u007f-\uffff]/g

/** The value of a Link header (RFC 8288 §3); undefined without links. */
export const linkHeader = (links: ReadonlyArray<PageLink>): string | undefined =>
  links.length === 0
    ? undefined
    : links.map((link) => {
      const href = link.href.replace(notInLink, encodeURIComponent)
      const type = link.type === undefined ? "" : `; type="${link.type}"`
      return `<${href}>; rel="${link.rel}"${type}`
    }).join(", ")
