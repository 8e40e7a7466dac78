/**
 * Notifications in JSON-LD (W3C Linked Data Notifications §3.3), read and written. A received
 * document is stored unchanged, beside an item for readers of XML. The service fetches no context,
 * so that the item has only the terms with their usual names.
 */
import { Predicate } from "effect"
import { parseUrl } from "../../../actors/index.ts"
import { type LinkedData, linkedDataType, mediaTypeOf, splitQuoted } from "../../formats/index.ts"
import { brokenJson, childOf, childText, type DocumentParser, type Element, element, failure,
  isText, isUri, type NotificationDocument, parseFragment, type Result, success, textOf,
  writeElement } from "../../formats/xml/index.ts"
import { headerValueCharsMax, linkedDataDepthMax, linkedDataReadMax, linkedDataTitleCharsMax,
  linkedDataValuesMax, uriCharsMax } from "../../limits.ts"
import { documentError, type HttpError, httpError } from "../../pipeline/index.ts"

/** The element beside the item that holds the document. */
const documentElement = "linked-data"

export const isLinkedData = (contentType: string): boolean =>
  mediaTypeOf(contentType) === linkedDataType

type Node = Readonly<Record<PropertyKey, unknown>>

/** The bound that a document exceeds; undefined for none. */
const boundsFault = (root: unknown): string | undefined => {
  let values = 0
  const visit = (value: unknown, depth: number): string | undefined => {
    values += 1
    if (values > linkedDataValuesMax) return `there are more than ${linkedDataValuesMax} values`
    if (typeof value !== "object" || value === null) return
    if (depth > linkedDataDepthMax) return `values are nested deeper than ${linkedDataDepthMax}`
    for (const inner of Object.values(value)) {
      const broken = visit(inner, depth + 1)
      if (broken !== undefined) return broken
    }
    return
  }
  return visit(root, 1)
}

/** The objects at the root: those of an array, or of a graph that is the whole document. */
const rootsOf = (root: unknown): ReadonlyArray<unknown> => {
  if (Array.isArray(root)) return root.flatMap(rootsOf)
  if (!Predicate.isObject(root) || !Object.hasOwn(root, "@graph")) return [root]
  const rest = Object.keys(root).filter((key) => key !== "@context" && key !== "@graph")
  return rest.length === 0 ? rootsOf(root["@graph"]) : [root]
}

const isContext = (value: unknown): boolean =>
  value === null || typeof value === "string" || typeof value === "object"

const isTypes = (value: unknown): boolean => [value].flat().every((one) => typeof one === "string")

/** Why a value at the root is not a node object (JSON-LD 1.1 §9.2); undefined when it is one. */
const nodeFault = (value: unknown): string | undefined => {
  if (!Predicate.isObject(value)) return "a notification is a node object, or an array of them"
  const has = (key: string): boolean => Object.hasOwn(value, key)
  const other = ["@value", "@list", "@set"].find(has)
  if (other !== undefined) return `an object with ${other} is no node object`
  if (has("@id") && typeof value["@id"] !== "string") return "@id must be a string"
  if (has("@type") && !isTypes(value["@type"])) return "@type must be a string, or several"
  if (has("@context") && !isContext(value["@context"])) {
    return "@context must be null, a string, " +
      "an object, or an array of them"
  }
  return
}

const hasProperty = (node: Node): boolean =>
  Object.keys(node).some((key) => key !== "@context" && key !== "@id")

const parsed = (text: string): Result<unknown, HttpError> => {
  try {
    return success(JSON.parse(text))
  } catch {
    return failure(httpError("malformed", brokenJson))
  }
}

const broken = (rule: string, detail: string): Result<never, HttpError> =>
  failure(httpError("unprocessable", detail, [], { rule }))

/** The node objects of a document; fails with 400 and 422. */
const nodesOf = (text: string): Result<ReadonlyArray<Node>, HttpError> => {
  const root = parsed(text)
  if (!root.ok) return root
  const beyond = boundsFault(root.value)
  if (beyond !== undefined) return broken("linked-data-bounds", beyond)
  const roots = rootsOf(root.value)
  for (const one of roots) {
    const fault = nodeFault(one)
    if (fault !== undefined) return broken("linked-data", fault)
  }
  const nodes = roots.filter(Predicate.isObject)
  return nodes.some(hasProperty)
    ? success(nodes)
    : broken("linked-data", "the document has no node with a property")
}

const activityStreams = "https://www.w3.org/ns/activitystreams#"

/** The values of a node under one of these names, or under ActivityStreams' IRIs for them. */
const valuesOf = (node: Node, ...names: ReadonlyArray<string>): ReadonlyArray<unknown> =>
  names.flatMap((name) => [name, `as:${name}`, activityStreams + name])
    .filter((name) => Object.hasOwn(node, name)).map((name) => node[name])

const isAddress = (value: unknown): value is string =>
  typeof value === "string" && /^https?:\/\//i.test(value) && value.length <= uriCharsMax &&
  isUri(value) && parseUrl(value) !== undefined

/** The first http(s) URI among values: a value itself, or the id of a node. */
const uriIn = (values: ReadonlyArray<unknown>): string | undefined => {
  for (const value of values.flat().slice(0, linkedDataReadMax)) {
    if (isAddress(value)) return value
    if (!Predicate.isObject(value)) continue
    const id = ["@id", "id"].filter((key) => Object.hasOwn(value, key)).map((key) => value[key])
      .find(isAddress)
    if (id !== undefined) return id
  }
  return
}

/** The first text among values, without markup: a summary of ActivityStreams is HTML. */
const titleIn = (values: ReadonlyArray<unknown>): string | undefined => {
  for (const value of values.flat().slice(0, linkedDataReadMax)) {
    const text = Predicate.isObject(value) && Object.hasOwn(value, "@value")
      ? value["@value"]
      : value
    if (typeof text !== "string") continue
    const plain = text.replace(/<[^<>]*>/g, "").replace(/\s+/g, " ").trim()
    if (plain !== "") return plain
  }
  return
}

const notText = /[^\t\n\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu

/** A text cut to the length of a description, with what XML cannot hold replaced. */
const truncated = (text: string): string =>
  Array.from(text.replace(notText, "\ufffd").slice(0, 2 * linkedDataTitleCharsMax))
    .slice(0, linkedDataTitleCharsMax).join("").replace(notText, "\ufffd")

/** The last part of a type's name: `Announce` of an IRI or a compact one. */
const shortName = (name: unknown): ReadonlyArray<string> => {
  if (typeof name !== "string") return []
  // An expression anchored at the end would be tried from every character.
  const before = Math.max(...["#", "/", ":"].map((mark) => name.lastIndexOf(mark)))
  return before === name.length - 1 ? [] : [name.slice(before + 1)]
}

const describe = (nodes: ReadonlyArray<Node>, url: string | undefined): string => {
  for (const node of nodes) {
    const title = titleIn(valuesOf(node, "summary")) ?? titleIn(valuesOf(node, "name"))
    if (title !== undefined) return truncated(title)
  }
  const types = nodes.flatMap((node) => ["@type", "type"].flatMap((key) => [node[key]].flat()))
    .flatMap(shortName)
  const type = types[0] ?? "Linked data"
  return truncated(url === undefined ? type : `${type}: ${url}`)
}

const firstOf = <A>(
  nodes: ReadonlyArray<Node>,
  read: (node: Node) => A | undefined
): A | undefined => {
  for (const node of nodes) {
    const value = read(node)
    if (value !== undefined) return value
  }
  return
}

/** The received type, with its profile. */
const typeOf = (contentType: string): string => {
  const type = contentType.trim()
  return type.length <= headerValueCharsMax && /^[\x20-\x7e]+$/.test(type) ? type : linkedDataType
}

/** The received document: as text where XML keeps each character, else as base64. */
const writeStoredDocument = (text: string, type: string): string => {
  const packed = writeElement(
    element(documentElement, { type, encoding: "base64" }, Buffer.from(text).toString("base64"))
  )
  if (!isText(text)) return packed
  const plain = writeElement(element(documentElement, { type }, text))
  return plain.length <= packed.length ? plain : packed
}

/**
 * The notification of a JSON-LD body. The `url` of its item is the `object` of the document, else
 * the document's own id. Without both, the document is its content, which the service publishes.
 * Fails with 400, 413, 415 and 422.
 */
export const readLinkedData = (
  parser: DocumentParser,
  bytes: Uint8Array,
  contentType: string
): Result<NotificationDocument, HttpError> => {
  const decoded = parser.decode(bytes, contentType)
  if (!decoded.ok) return failure(documentError(decoded.fault))
  const text = decoded.value
  const found = nodesOf(text)
  if (!found.ok) return found
  const nodes = found.value.slice(0, linkedDataReadMax)
  const type = typeOf(contentType)
  const url = firstOf(nodes, (node) => uriIn(valuesOf(node, "object", "source"))) ?? uriIn(nodes)
  const content = { type, encoding: "base64", text: Buffer.from(text).toString("base64") } as const
  return success({
    to: [],
    from: false,
    sender: firstOf(nodes, (node) => uriIn(valuesOf(node, "actor", "attributedTo"))),
    description: describe(nodes, url),
    url: url ?? "",
    password: undefined,
    content: url === undefined ? content : undefined,
    itemAttributes: "",
    fieldAttributes: undefined,
    extra: "",
    rootExtra: writeStoredDocument(text, type)
  })
}

/* Writing. */

/** A document that the service makes. */
export const writeLinkedData = (document: unknown): LinkedData => ({
  text: `${JSON.stringify(document)}\n`,
  type: linkedDataType
})

const profilePattern = /^profile=("(?:[ !#-[\]-~]|\\[ -~])*"|[!#$%&'*+.^_`|~0-9A-Za-z-]+)$/i

/** The type under which a received document is served: with its profile, since it is UTF-8. */
const servedType = (received = ""): string => {
  if (!isLinkedData(received) || received.length > headerValueCharsMax) return linkedDataType
  const [, ...parameters] = splitQuoted(received, ";").map((one) => one.trim())
  const profile = parameters.map((one) => profilePattern.exec(one)?.[1]).find(Boolean)
  return profile === undefined ? linkedDataType : `${linkedDataType}; profile=${profile}`
}

/** The JSON-LD of a stored notification; undefined when it has none or an invalid one. */
export const linkedDataOf = (fragment: string): LinkedData | undefined => {
  if (!fragment.includes(`<${documentElement}`)) return
  const found = childOf({ children: parseFragment(fragment) }, documentElement)
  if (found === undefined) return
  const text = found.attributes["encoding"] === "base64"
    ? Buffer.from(textOf(found), "base64").toString()
    : textOf(found)
  // A notification posted as XML may hold any text there.
  return nodesOf(text).ok ? { text, type: servedType(found.attributes["type"]) } : undefined
}

/** The announced object: the URI of the message, and its inlined content if that is text. */
const objectOf = (item: Element): unknown => {
  const url = childText(item, "url")
  const content = childOf(item, "content")
  if (content === undefined || content.attributes["encoding"] !== undefined) return url
  return {
    id: url,
    type: "Object",
    mediaType: content.attributes["type"],
    content: textOf(content)
  }
}

/** The address of a notification and the time of its receipt; a relayed one has neither yet. */
interface ActivityContext {
  readonly id?: string
  readonly target: string
  readonly published?: string
}

/**
 * What the activity does, and to what: a follow-up updates the notification that it `replaces`, or
 * deletes it if it is `withdrawn` (ActivityStreams 2.0, Vocabulary §3.1); any other one announces.
 */
const activityTypeOf = (item: Element): Readonly<Record<string, unknown>> => {
  const replaces = childText(item, "replaces")
  if (replaces === undefined) return { type: "Announce", object: objectOf(item) }
  return childOf(item, "withdrawn") === undefined
    ? { type: "Update", object: objectOf(item), origin: replaces }
    : { type: "Delete", object: replaces }
}

const announce = (fragment: string, { id, published, target }: ActivityContext): unknown => {
  const item = childOf({ children: parseFragment(fragment) }, "item")
  if (item === undefined) throw new Error("a stored notification has no item")
  return {
    "@context": "https://www.w3.org/ns/activitystreams",
    id,
    ...activityTypeOf(item),
    summary: escaped(childText(item, "description") ?? ""),
    actor: childText(item, "from"),
    target,
    published
  }
}

/** A summary of ActivityStreams is HTML (Vocabulary §4), a description is plain. */
const escaped = (text: string): string =>
  text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;")

/** The JSON-LD that was posted, or an Announce (ActivityStreams 2.0) of the notification. */
export const activityOf = (fragment: string, context: ActivityContext): LinkedData =>
  linkedDataOf(fragment) ?? writeLinkedData(announce(fragment, context))
