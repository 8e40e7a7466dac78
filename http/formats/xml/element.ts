/**
 * The document model: an element with attributes and children, its writer, and the escaping rules.
 * The writer throws rather than write text that is not well-formed XML 1.0.
 */
/** One element. `attributes` has no prototype; children are elements and text, in order. */
export interface Element {
  readonly name: string
  readonly attributes: Readonly<Record<string, string>>
  readonly children: ReadonlyArray<Element | string>
}

/** An element that a parser has not closed yet. */
export interface OpenElement extends Element {
  readonly children: Array<Element | string>
}

/** A value, or the fault that prevents it. */
export type Result<A, E> =
  | { readonly ok: true; readonly value: A }
  | { readonly ok: false; readonly fault: E }

export const success = <A>(value: A): Result<A, never> => ({ ok: true, value })

export const failure = <E>(fault: E): Result<never, E> => ({ ok: false, fault })

/**
 * Why a document is rejected: bad syntax (400), more bytes than allowed (413), no UTF-8 (415), or
 * markup that a browser would run (422).
 */
export interface XmlFault {
  readonly _tag: "Malformed" | "TooLarge" | "OtherCharset" | "ActiveMarkup"
  readonly detail: string
}

/** Names that could reach an object's prototype in some reader: never accepted, never written. */
const reservedNames: ReadonlySet<string> = new Set(["__proto__", "constructor", "prototype"])

export const isReservedName = (name: string): boolean => reservedNames.has(name)

const nameStart =
  ":A-Z_a-z\\u00C0-\\u00D6\\u00D8-\\u00F6\\u00F8-\\u02FF\\u0370-\\u037D\\u037F-\\u1FFF"
  + "\\u200C\\u200D\\u2070-\\u218F\\u2C00-\\u2FEF\\u3001-\\uD7FF\\uF900-\\uFDCF\\uFDF0-\\uFFFD"

const nameRest = "\\-.0-9\\u00B7\\u0300-\\u036F\\u203F\\u2040"

const namePattern = new RegExp(`^[${nameStart}][${nameStart}${nameRest}]*$`)

/** Whether a string is an XML 1.0 name (of the basic plane) that this service accepts. */
export const isName = (name: string): boolean => namePattern.test(name) && !reservedNames.has(name)

/** Characters that XML 1.0 cannot hold even as references, including lone surrogates. */
// eslint-disable-next-line no-control-regex
const forbidden = /[\u0000-\u0008\u000B\u000C\u000E-\u001F\uFFFE\uFFFF]|\p{Surrogate}/u

/** Whether a string can be written as XML text: no control characters, no lone surrogates. */
export const isText = (text: string): boolean => !forbidden.test(text)

/** A text to show, with a replacement character for each that XML and HTML cannot hold. */
export const withoutForbidden = (text: string): string =>
  isText(text) ? text : text.replace(new RegExp(forbidden, "gu"), "\ufffd")

/** The text of another service; one that XML cannot hold is escaped as JSON. */
export const printable = (text: string): string => isText(text) ? text : JSON.stringify(text)

const unsafeInText = /[&<>\r\u0000-\u0008\u000B\u000C\u000E-\u001F\uD800-\uDFFF\uFFFE\uFFFF]/

const unsafeInAttribute =
  /[&<>"\t\n\r\u0000-\u0008\u000B\u000C\u000E-\u001F\uD800-\uDFFF\uFFFE\uFFFF]/

/**
 * Text as XML character data. A carriage return becomes a reference, since readers normalize it.
 * Throws (a defect) on characters that XML cannot hold: check input with `isText`.
 */
export const escapeText = (text: string): string => {
  if (!unsafeInText.test(text)) return text
  if (forbidden.test(text)) throw new Error("a control character cannot be written as XML")
  return text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;")
    .replace(/\r/g, "&#13;")
}

/** Text as the value of a double-quoted attribute; throws as `escapeText` does. */
export const escapeAttribute = (text: string): string => {
  if (!unsafeInAttribute.test(text)) return text
  return escapeText(text).replace(/"/g, "&quot;").replace(/\t/g, "&#9;").replace(/\n/g, "&#10;")
}

/** Attributes for `element`, which omits undefined ones. */
export type AttributesInput = Readonly<Record<string, string | number | undefined>>

/** Builds an element; it omits undefined children, and numbers become text. */
export const element = (
  name: string,
  attributes: AttributesInput = {},
  ...children: ReadonlyArray<Element | string | number | undefined>
): Element => {
  const own: Record<string, string> = Object.create(null)
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== undefined) own[key] = String(value)
  }
  const present: Array<Element | string> = []
  for (const child of children) {
    if (child !== undefined) present.push(typeof child === "number" ? String(child) : child)
  }
  return { name, attributes: own, children: present }
}

/** An element with this content; undefined without any. */
export const optionalElement = (
  name: string,
  content: string | number | undefined
): Element | undefined => content === undefined ? undefined : element(name, {}, content)

/** A time of RFC 3339 from ms since the epoch; undefined without one. */
export function isoTime(atMs: number): string
export function isoTime(atMs: number | undefined): string | undefined
export function isoTime(atMs: number | undefined): string | undefined {
  return atMs === undefined ? undefined : new Date(atMs).toISOString()
}

/** An element with these members; none if there are none. */
export const listElement = (
  name: string,
  members: ReadonlyArray<Element>
): ReadonlyArray<Element> => members.length === 0 ? [] : [element(name, {}, ...members)]

/** The text of an element and of its descendants, in document order. */
export const textOf = (node: Element): string => {
  let text = ""
  for (const child of node.children) text += typeof child === "string" ? child : textOf(child)
  return text
}

/** The element children in order, or only those of one name. */
export const childrenOf = (node: Element, name?: string): ReadonlyArray<Element> =>
  node.children.filter((child): child is Element =>
    typeof child !== "string" && (name === undefined || child.name === name)
  )

/** The first child element of a name. */
export const childOf = (
  { children }: Pick<Element, "children">,
  name: string
): Element | undefined => {
  for (const child of children) {
    if (typeof child !== "string" && child.name === name) return child
  }
  return undefined
}

/** The text of the first child element of a name. */
export const childText = (node: Element, name: string): string | undefined => {
  const child = childOf(node, name)
  return child === undefined ? undefined : textOf(child)
}

const openTag = (node: Element): string => {
  if (!isName(node.name)) throw new Error(`${JSON.stringify(node.name)} is not an element name`)
  let tag = `<${node.name}`
  for (const key in node.attributes) {
    if (!isName(key)) throw new Error(`${JSON.stringify(key)} is not an attribute name`)
    tag += ` ${key}="${escapeAttribute(node.attributes[key] ?? "")}"`
  }
  return tag
}

/** An element as XML text without a declaration. Throws (a defect) on invalid names or text. */
export const writeElement = (node: Element): string => {
  if (node.children.length === 0) return `${openTag(node)}/>`
  let text = `${openTag(node)}>`
  for (const child of node.children) {
    text += typeof child === "string" ? escapeText(child) : writeElement(child)
  }
  return `${text}</${node.name}>`
}

export const xmlDeclaration = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"

/** An element as a whole document. */
export const writeDocument = (root: Element): string => xmlDeclaration + writeElement(root)
