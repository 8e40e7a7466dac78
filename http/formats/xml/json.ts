/**
 * Documents as JSON (protocol §0). Attributes and elements become properties, a repeatable element
 * becomes an array, and the text of an element that has properties becomes `text`. Three further
 * rules are for the unknown elements and attributes that a notification may have: elements named
 * `text` are always an array; beside them the text is `#text`; an attribute is `@name`, also
 * `@xmlns` and `@xml:lang`. The JSON that this service sends does not contain the root element's
 * name. A client may send `{ "<root name>": { … } }`, or the text of the root in place of the
 * object.
 */
import { xmlNameCharsMax, xmlNodesMax } from "../../limits.ts"
import { parseText } from "./document.ts"
import { type Element, failure, isName, isText, type Result, success, writeElement,
  type XmlFault } from "./element.ts"
import { fieldOf } from "./notification-document.ts"

/** Names by the name of their parent element. */
type NamesByParent = Readonly<Record<string, ReadonlyArray<string>>>

/** The properties that are attributes in the documents that clients send; others are elements. */
const attributeNames: NamesByParent = {
  notification: ["from", "href", "received"],
  content: ["type", "encoding"],
  answer: ["continue", "href"],
  receipt: ["status", "mailbox"],
  mailbox: ["href"],
  registration: ["status"],
  pauses: ["status", "href", "since"],
  pause: ["origin", "since"],
  query: ["on", "href", "expires", "contains", "since"],
  where: ["field", "op", "value"],
  order: ["by", "direction"],
  price: ["currency"],
  quote: ["symbol", "href"],
  token: ["name", "expires", "scope"],
  customer: ["id", "href"]
}

/** The children that are arrays in JSON even if there is only one. */
const repeatables: NamesByParent = {
  mailbox: ["notification"],
  mailboxes: ["mailbox"],
  cabinet: ["mailbox", "notification"],
  notification: ["to", "recipient"],
  retry: ["to"],
  account: ["role", "token"],
  depositor: ["host"],
  report: ["host"],
  request: ["header"],
  answer: ["header"],
  audit: ["entry"],
  "audit-chain": ["item"],
  changed: ["notification"],
  waiting: ["message"],
  query: ["where", "all", "any", "not"],
  documentation: ["page", "match"],
  document: ["part"],
  "api-reference": ["operation"],
  all: ["where", "all", "any", "not"],
  any: ["where", "all", "any", "not"],
  not: ["where", "all", "any", "not"]
}

/** The property with the text of an element that has other properties. */
const textName = "text"

/** The same beside elements of that name. */
const textNameBeside = "#text"

const isNamed = (names: NamesByParent, parent: string, child: string): boolean =>
  Object.hasOwn(names, parent) && names[parent]?.includes(child) === true

const isRepeatable = (parent: string, child: string): boolean =>
  child === textName || parent === `${child}s` ||
  (child.endsWith("y") && parent === `${child.slice(0, -1)}ies`) ||
  isNamed(repeatables, parent, child)

/**
 * Where an element is: in what the service defines, as the item of a notification or a field of it,
 * or in what others have added to a notification.
 */
type Place = "defined" | "item" | "field" | "foreign"

/** The children of a notification that are not foreign, beside its item. */
const notificationParts: ReadonlySet<string> = new Set(["to", "recipient", "cached"])

const placeIn = (parent: string, place: Place, child: string): Place => {
  if (place === "item") return fieldOf(child) === undefined ? "foreign" : "field"
  if (place !== "defined") return "foreign"
  if (parent !== "notification" || notificationParts.has(child)) return "defined"
  return child === "item" ? "item" : "foreign"
}

/** Whether XML gives the name a meaning: it declares a namespace, or has a prefix. */
const isOfNamespaces = (name: string): boolean => name === "xmlns" || name.includes(":")

/** Whether an attribute that the service writes or has stored needs no `@` in this place. */
const isDefinedAttribute = (place: Place, parent: string, name: string): boolean =>
  (place === "defined" && !isOfNamespaces(name)) ||
  (place === "field" && isNamed(attributeNames, parent, name))

/** A JSON value as `toJson` makes it. */
export type JsonDocument = string | ReadonlyArray<JsonDocument> | {
  readonly [key: string]: JsonDocument
}

/** Without a prototype, it has only the properties of the document. */
const emptyObject = (): Record<string, JsonDocument> => Object.create(null)

const valueOf = (node: Element, place: Place): JsonDocument => {
  let hasAttributes = false
  for (const _ in node.attributes) hasAttributes = true
  const parts = node.children.filter((child) => typeof child !== "string")
  if (!hasAttributes && parts.length === 0) return node.children.join("")
  return objectOf(node, place)
}

const objectOf = (node: Element, place: Place): Record<string, JsonDocument> => {
  const object = emptyObject()
  let text = ""
  const lists = new Map<string, Array<JsonDocument>>()
  for (const child of node.children) {
    if (typeof child === "string") text += child
    else {
      const value = valueOf(child, placeIn(node.name, place, child.name))
      const list = lists.get(child.name)
      if (list === undefined) lists.set(child.name, [value])
      else list.push(value)
    }
  }
  for (const key in node.attributes) {
    const isPlain = key !== textName && !lists.has(key) && isDefinedAttribute(place, node.name, key)
    object[isPlain ? key : `@${key}`] = node.attributes[key] ?? ""
  }
  for (const [name, list] of lists) {
    const first = list[0]
    const single = list.length === 1 && first !== undefined && !isRepeatable(node.name, name)
    object[name] = single ? first : list
  }
  // White space may be the whole text of an unknown element, but is not between elements.
  const hasText = place === "foreign" && lists.size === 0 ? text !== "" : text.trim() !== ""
  if (hasText) object[lists.has(textName) ? textNameBeside : textName] = text
  return object
}

/** The entries of listings that are not named by the plural of their entries. */
const irregularEntries: ReadonlyMap<string, string> = new Map([
  ["mailboxes", "mailbox"],
  ["audit", "entry"],
  ["audit-chain", "item"]
])

/** Adds an empty array for the entries of an empty listing. */
const addEmptyLists = (root: Element, object: Record<string, JsonDocument>): void => {
  const entries = irregularEntries.get(root.name)
  if (entries !== undefined) {
    object[entries] ??= []
    return
  }
  const singular = root.name.endsWith("ies")
    ? `${root.name.slice(0, -3)}y`
    : root.name.endsWith("s")
    ? root.name.slice(0, -1)
    : undefined
  if (singular !== undefined) object[singular] ??= []
  if ((root.name === "mailbox" || root.name === "cabinet") && "time" in root.attributes) {
    object["notification"] ??= []
  }
}

/** The JSON form of a document: always an object. */
export const toJson = (root: Element): { readonly [key: string]: JsonDocument } => {
  const object = objectOf(root, "defined")
  addEmptyLists(root, object)
  return object
}

/** The JSON value cannot be a document; `fromJson` returns it as `Malformed`. */
class JsonRejected extends Error {}

/** The elements and attributes of one document so far, and its bound. */
interface JsonReading {
  nodes: number
  usesNamespaces: boolean
  readonly depthMax: number
}

const isScalar = (value: unknown): value is string | number | boolean =>
  typeof value === "string" || typeof value === "number" || typeof value === "boolean"

const scalarText = (value: string | number | boolean): string => {
  const text = String(value)
  if (!isText(text)) {
    throw new JsonRejected("a string holds a control character or a lone surrogate")
  }
  return text
}

const countNode = (reading: JsonReading): void => {
  reading.nodes += 1
  if (reading.nodes > xmlNodesMax) {
    throw new JsonRejected(`there are more than ${xmlNodesMax} values`)
  }
}

const readElement = (
  name: string,
  place: Place,
  value: unknown,
  depth: number,
  reading: JsonReading
): Element => {
  const { depthMax } = reading
  if (depth > depthMax) {
    throw new JsonRejected(
      `values are nested deeper than ${depthMax} (XML_DEPTH_MAX): nest them less deep`
    )
  }
  countNode(reading)
  const attributes: Record<string, string> = Object.create(null)
  const children: Array<Element | string> = []
  if (isScalar(value)) children.push(scalarText(value))
  else if (Array.isArray(value)) throw new JsonRejected(`${name} cannot be an array of arrays`)
  else if (typeof value === "object" && value !== null) {
    for (const [key, inner] of Object.entries(value)) {
      readProperty(name, place, key, inner, depth, reading, attributes, children)
    }
  }
  return { name, attributes, children: children.filter((child) => child !== "") }
}

const readProperty = (
  parent: string,
  place: Place,
  key: string,
  value: unknown,
  depth: number,
  reading: JsonReading,
  attributes: Record<string, string>,
  children: Array<Element | string>
): void => {
  if (value === null || value === undefined) return
  if ((key === textName || key === textNameBeside) && isScalar(value)) {
    children.push(scalarText(value))
    return
  }
  const name = key.startsWith("@") ? key.slice(1) : key
  if (!isName(name) || name.length > xmlNameCharsMax) {
    throw new JsonRejected(`${JSON.stringify(key.slice(0, 40))} cannot be an element's name`)
  }
  if (isOfNamespaces(name)) reading.usesNamespaces = true
  const isAttribute = key !== name ||
    (place !== "foreign" && isNamed(attributeNames, parent, key))
  if (isAttribute && isScalar(value)) {
    countNode(reading)
    attributes[name] = scalarText(value)
    return
  }
  const inside = placeIn(parent, place, name)
  for (const inner of Array.isArray(value) ? value : [value]) {
    children.push(readElement(name, inside, inner, depth + 1, reading))
  }
}

/**
 * The document with this root element from a JSON value; fails with `Malformed`. Names with a
 * prefix are those of XML, which declares it.
 */
export const fromJson = (
  rootName: string,
  value: unknown,
  depthMax: number
): Result<Element, XmlFault> => {
  try {
    const inner = unwrap(rootName, value)
    if (inner === null || Array.isArray(inner)) {
      throw new JsonRejected("the document must be an object")
    }
    const reading: JsonReading = { nodes: 0, usesNamespaces: false, depthMax }
    const root = readElement(rootName, "defined", inner, 1, reading)
    if (!reading.usesNamespaces) return success(root)
    const asXml = parseText(writeElement(root), depthMax)
    return asXml.ok ? success(root) : asXml
  } catch (error) {
    if (error instanceof JsonRejected) return failure({ _tag: "Malformed", detail: error.message })
    throw error
  }
}

/** The value of the only property, if that is named as the root and is no array. */
const unwrap = (rootName: string, value: unknown): unknown => {
  if (typeof value !== "object" || value === null || !Object.hasOwn(value, rootName)) return value
  const entries = Object.entries(value)
  const inner: unknown = entries[0]?.[1]
  const isWrapped = entries.length === 1 && !Array.isArray(inner)
  return isWrapped ? inner : value
}

/** Strings are matched too, so that digits within them stay. */
const stringsAndNumbers = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g

/** Valid JSON with its numbers as strings, so that every digit of them remains. */
const withExactNumbers = (text: string): string =>
  text.replace(stringsAndNumbers, (one) => one.startsWith("\"") ? one : `"${one}"`)

/** What a sender of broken JSON reads: what is wrong with it, and what to do. */
export const brokenJson = "the body is not valid JSON: put names and texts in double quotes, " +
  "with no comma after the last one"

/** Parses JSON; its numbers become strings. Fails with `Malformed`. */
export const parseExactJson = (text: string): Result<unknown, XmlFault> => {
  try {
    const value: unknown = JSON.parse(text)
    const exact = withExactNumbers(text)
    return success(exact === text ? value : JSON.parse(exact))
  } catch {
    return failure({ _tag: "Malformed", detail: brokenJson })
  }
}
