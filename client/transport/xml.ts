/**
 * Converts the XML of events and pushes into the JSON that the service writes for the same
 * documents. Browsers, Node and Deno have no XML parser in common. The service writes a small part
 * of XML: elements, attributes, text, the five entities and character references.
 */
import { xmlDepthMax } from "../limits.ts"
import { type Json, type JsonObject, unexpected } from "./json.ts"

/** An element. Its text is unescaped, and its children are in document order. */
interface Node {
  readonly name: string
  readonly attributes: ReadonlyArray<readonly [string, string]>
  readonly children: Array<Node | string>
}

const entities: Readonly<Record<string, string>> = {
  amp: "&",
  lt: "<",
  gt: ">",
  quot: "\"",
  apos: "'"
}

const malformed = (what: string): never => unexpected(`${what} in XML`)

const character = (code: number): string =>
  code > 0 && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff)
    ? String.fromCodePoint(code)
    : malformed("an impossible character")

/** Replaces references in text, and line ends by line feeds (XML 1.0 §2.11). */
const unescaped = (text: string): string =>
  text.replace(/\r\n?/g, "\n").replace(/&([^;]*);|&/g, (_, name?: string) => {
    if (name === undefined) return malformed("a lone &")
    if (/^#x[0-9a-f]{1,6}$/i.test(name)) return character(Number.parseInt(name.slice(2), 16))
    if (/^#\d{1,7}$/.test(name)) return character(Number(name.slice(1)))
    return (Object.hasOwn(entities, name) ? entities[name] : undefined) ??
      malformed("an unknown entity")
  })

const nameSource = "[^\\s<>/=\"'!?&]+"

const attributeSource = `\\s+(${nameSource})\\s*=\\s*("[^"<]*"|'[^'<]*')`

const token = new RegExp(
  `<!\\[CDATA\\[([\\s\\S]*?)\\]\\]>|(<!--[\\s\\S]*?-->|<\\?[\\s\\S]*?\\?>)|` +
    `</(${nameSource})\\s*>|<(${nameSource})((?:${attributeSource})*)\\s*(/?)>|([^<]+)`,
  "y"
)

const attributePattern = new RegExp(attributeSource, "g")

const attributesOf = (text: string): Node["attributes"] =>
  Array.from(text.matchAll(attributePattern), ([, name = "", quoted = ""]) => {
    // A line end or tab in an attribute is a space unless it is written as a reference (§3.3.3).
    return [name, unescaped(quoted.slice(1, -1).replace(/\r\n|[\t\n\r]/g, " "))] as const
  })

/** Parses a document, or a single element; returns the root. */
const parse = (xml: string): Node => {
  const top: Node = { name: "", attributes: [], children: [] }
  const open: Array<Node> = [top]
  token.lastIndex = xml.startsWith("\ufeff") ? 1 : 0
  while (token.lastIndex < xml.length) {
    const match = token.exec(xml) ?? malformed("something that is no markup")
    const [, cdata, ignored, closed, name, attributes = "", , , empty, text] = match
    const parent = open.at(-1) ?? top
    if (ignored !== undefined) continue
    if (cdata !== undefined) parent.children.push(cdata.replace(/\r\n?/g, "\n"))
    else if (text !== undefined) parent.children.push(unescaped(text))
    else if (closed !== undefined) {
      if (open.length < 2 || parent.name !== closed) malformed(`a stray </${closed}>`)
      open.pop()
    } else if (name !== undefined) {
      const node: Node = { name, attributes: attributesOf(attributes), children: [] }
      parent.children.push(node)
      if (empty !== "/") open.push(node)
      if (open.length > xmlDepthMax) malformed("too deep a nesting")
    }
  }
  const roots = top.children.filter((child) => typeof child !== "string")
  const [root] = roots
  if (open.length !== 1 || root === undefined || roots.length !== 1) malformed("no whole element")
  return root ?? top
}

/** Children that are arrays even when an element has only one of them. */
const lists: Readonly<Record<string, ReadonlyArray<string>>> = {
  mailbox: ["notification"],
  cabinet: ["mailbox", "notification"],
  notification: ["to", "recipient"],
  account: ["role", "token"],
  changed: ["notification", "removed"],
  query: ["where", "all", "any", "not"],
  all: ["where", "all", "any", "not"],
  any: ["where", "all", "any", "not"],
  not: ["where", "all", "any", "not"]
}

const isList = (parent: string, child: string): boolean =>
  child === "text" || parent === `${child}s` ||
  (child.endsWith("y") && parent === `${child.slice(0, -1)}ies`) ||
  (Object.hasOwn(lists, parent) && lists[parent]?.includes(child) === true)

/**
 * Where an element is: in what the service defines, as the item of a notification or a field of it,
 * or in what others have added to a notification.
 */
type Place = "defined" | "item" | "field" | "foreign"

const itemFields: ReadonlySet<string> = new Set([
  "description",
  "url",
  "password",
  "content",
  "from"
])

/** The children of a notification that are not foreign, beside its item. */
const notificationParts: ReadonlySet<string> = new Set(["to", "recipient", "cached"])

const placeIn = (parent: string, place: Place, child: string): Place => {
  if (place === "item") return itemFields.has(child) ? "field" : "foreign"
  if (place !== "defined") return "foreign"
  if (parent !== "notification" || notificationParts.has(child)) return "defined"
  return child === "item" ? "item" : "foreign"
}

/** Whether an attribute needs no `@` in this place. */
const isDefinedAttribute = (place: Place, parent: string, name: string): boolean =>
  (place === "defined" && name !== "xmlns" && !name.includes(":")) ||
  (place === "field" && parent === "content" && (name === "type" || name === "encoding"))

const jsonOf = (node: Node, place: Place): Json => {
  const isText = node.attributes.length === 0 &&
    node.children.every((child) => typeof child === "string")
  return isText ? node.children.join("") : objectOf(node, place)
}

const objectOf = ({ attributes, children, name }: Node, place: Place): JsonObject => {
  const groups = new Map<string, Array<Json>>()
  let text = ""
  for (const child of children) {
    if (typeof child === "string") text += child
    else {
      const value = jsonOf(child, placeIn(name, place, child.name))
      // A stranger may deposit thousands of equal children: a copy for each takes quadratic time.
      const group = groups.get(child.name)
      if (group === undefined) groups.set(child.name, [value])
      else group.push(value)
    }
  }
  const entries: Array<[string, Json]> = attributes.map(([key, value]) => {
    const isPlain = key !== "text" && !groups.has(key) && isDefinedAttribute(place, name, key)
    return [isPlain ? key : `@${key}`, value]
  })
  for (const [key, group] of groups) {
    const [only] = group
    entries.push([
      key,
      group.length === 1 && only !== undefined && !isList(name, key) ? only : group
    ])
  }
  const hasText = place === "foreign" && groups.size === 0 ? text !== "" : /\S/.test(text)
  if (hasText) entries.push([groups.has("text") ? "#text" : "text", text])
  return Object.fromEntries(entries)
}

/** Converts a document into the JSON of the service; throws UnexpectedAnswer. */
export const xmlToJson = (xml: string): JsonObject => objectOf(parse(xml), "defined")
