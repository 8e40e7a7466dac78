/**
 * The same documents as JSON (protocol §0): an element becomes a property, an attribute a
 * property, a repeatable element an array, and the text of an element that also has those `#text`.
 * The root element's name is not part of the JSON; a lone property of that name is unwrapped.
 */
import { xmlDepthMax, xmlNameCharsMax, xmlNodesMax } from "../../limits.ts"
import { decodeDocument } from "./decoding.ts"
import { type Element, failure, isName, isText, type Result, success,
  type XmlFault } from "./element.ts"

/** Which properties of which element are attributes when JSON is read; others are elements. */
export type AttributeNames = Readonly<Record<string, ReadonlyArray<string>>>

/** The attributes of the documents that clients send. */
export const documentAttributes: AttributeNames = {
  notification: ["from", "href", "received"],
  content: ["type", "encoding"],
  answer: ["continue", "href"],
  receipt: ["status", "mailbox"],
  mailbox: ["href"],
  query: ["on", "href", "contains", "since"],
  where: ["field", "op", "value"],
  order: ["by", "direction"],
  price: ["currency"],
  quote: ["symbol", "href"],
  token: ["name", "expires"],
  customer: ["id", "href"]
}

/** Which children of which element are arrays in JSON even when there is only one. */
const repeatables: AttributeNames = {
  mailbox: ["notification"],
  mailboxes: ["mailbox"],
  cabinet: ["mailbox", "notification"],
  notification: ["to", "recipient"],
  account: ["role", "token"],
  changed: ["notification"],
  query: ["where", "all", "any", "not"],
  all: ["where", "all", "any", "not"],
  any: ["where", "all", "any", "not"],
  not: ["where", "all", "any", "not"]
}

const isRepeatable = (parent: string, child: string): boolean =>
  parent === `${child}s` || (child.endsWith("y") && parent === `${child.slice(0, -1)}ies`) ||
  Boolean(repeatables[parent]?.includes(child))

/** A JSON value as `toJson` makes it. */
export type JsonDocument = string | ReadonlyArray<JsonDocument> | {
  readonly [key: string]: JsonDocument
}

const own = (): Record<string, JsonDocument> => Object.create(null)

const hasInk = /\S/

const valueOf = (node: Element): JsonDocument => {
  let hasAttributes = false
  for (const _ in node.attributes) hasAttributes = true
  const parts = node.children.filter((child) => typeof child !== "string")
  if (!hasAttributes && parts.length === 0) return node.children.join("")
  return objectOf(node)
}

const objectOf = (node: Element): Record<string, JsonDocument> => {
  const object = own()
  let text = ""
  const lists = new Map<string, Array<JsonDocument>>()
  for (const child of node.children) {
    if (typeof child === "string") text += child
    else {
      const list = lists.get(child.name)
      if (list === undefined) lists.set(child.name, [valueOf(child)])
      else list.push(valueOf(child))
    }
  }
  for (const key in node.attributes) {
    object[lists.has(key) ? `@${key}` : key] = node.attributes[key] ?? ""
  }
  for (const [name, list] of lists) {
    const first = list[0]
    const single = list.length === 1 && first !== undefined && !isRepeatable(node.name, name)
    object[name] = single ? first : list
  }
  if (hasInk.test(text)) object["#text"] = text
  return object
}

/** Lists that an answer's root shows as an empty array rather than not at all. */
const emptyLists = (root: Element, object: Record<string, JsonDocument>): void => {
  if (root.name === "mailboxes") {
    object["mailbox"] ??= []
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
  const object = objectOf(root)
  emptyLists(root, object)
  return object
}

class Misfit extends Error {}

interface Reading {
  nodes: number
  readonly attributes: AttributeNames
}

const isScalar = (value: unknown): value is string | number | boolean =>
  typeof value === "string" || typeof value === "number" || typeof value === "boolean"

const scalar = (value: string | number | boolean): string => {
  const text = String(value)
  if (!isText(text)) throw new Misfit("a string holds a control character or a lone surrogate")
  return text
}

const count = (reading: Reading): void => {
  reading.nodes += 1
  if (reading.nodes > xmlNodesMax) throw new Misfit(`there are more than ${xmlNodesMax} values`)
}

const read = (name: string, value: unknown, depth: number, reading: Reading): Element => {
  if (depth > xmlDepthMax) throw new Misfit(`values are nested deeper than ${xmlDepthMax}`)
  count(reading)
  const attributes: Record<string, string> = Object.create(null)
  const children: Array<Element | string> = []
  if (isScalar(value)) children.push(scalar(value))
  else if (Array.isArray(value)) throw new Misfit(`${name} cannot be an array of arrays`)
  else if (typeof value === "object" && value !== null) {
    for (const [key, inner] of Object.entries(value)) {
      readProperty(name, key, inner, depth, reading, attributes, children)
    }
  }
  return { name, attributes, children: children.filter((child) => child !== "") }
}

const readProperty = (
  parent: string,
  key: string,
  value: unknown,
  depth: number,
  reading: Reading,
  attributes: Record<string, string>,
  children: Array<Element | string>
): void => {
  if (value === null || value === undefined) return
  if (key === "#text" && isScalar(value)) {
    children.push(scalar(value))
    return
  }
  const name = key.startsWith("@") ? key.slice(1) : key
  // A colon would be a namespace prefix, which JSON has no way to declare.
  if (!isName(name) || name.includes(":") || name.length > xmlNameCharsMax) {
    throw new Misfit(`${JSON.stringify(key.slice(0, 40))} cannot be an element's name`)
  }
  const isAttribute = key !== name || Boolean(reading.attributes[parent]?.includes(key))
  if (isAttribute && isScalar(value)) {
    count(reading)
    attributes[name] = scalar(value)
    return
  }
  for (const inner of Array.isArray(value) ? value : [value]) {
    children.push(read(name, inner, depth + 1, reading))
  }
}

/** The document of that root name from parsed JSON; fails with `Malformed`. */
export const fromJson = (
  rootName: string,
  value: unknown,
  attributes: AttributeNames = documentAttributes
): Result<Element, XmlFault> => {
  try {
    const inner = unwrap(rootName, value)
    if (inner === null || Array.isArray(inner)) throw new Misfit("the document must be an object")
    return success(read(rootName, inner, 1, { nodes: 0, attributes }))
  } catch (error) {
    if (error instanceof Misfit) return failure({ _tag: "Malformed", detail: error.message })
    throw error
  }
}

const unwrap = (rootName: string, value: unknown): unknown => {
  if (typeof value !== "object" || value === null || !Object.hasOwn(value, rootName)) return value
  const entries = Object.entries(value)
  const inner: unknown = entries[0]?.[1]
  const isWrapped = entries.length === 1 && typeof inner === "object" && !Array.isArray(inner)
  return isWrapped ? inner : value
}

const numbers = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g

/** Valid JSON with its numbers as strings: no digit of them gets lost, no zero at their end. */
const withExactNumbers = (text: string): string =>
  text.replace(numbers, (one) => one.startsWith("\"") ? one : `"${one}"`)

/** As `fromJson`, from a request body; fails with `TooLarge` or `Malformed`. */
export const parseJsonDocument = (
  rootName: string,
  bytes: Uint8Array,
  contentType = "",
  attributes: AttributeNames = documentAttributes
): Result<Element, XmlFault> => {
  const decoded = decodeDocument(bytes, contentType)
  if (!decoded.ok) return decoded
  let value: unknown
  try {
    value = JSON.parse(decoded.value)
    const exact = withExactNumbers(decoded.value)
    if (exact !== decoded.value) value = JSON.parse(exact)
  } catch {
    return failure({ _tag: "Malformed", detail: "the body is not valid JSON" })
  }
  return fromJson(rootName, value, attributes)
}
