/**
 * A notification as a document: its fields, the checks of each (protocol A2, A5), and the XML
 * fragment in which it is stored and served.
 */
import { type SealPassword, withSealedPassword } from "../../../actors/index.ts"
import { uriCharsMax } from "../../limits.ts"
import { childrenOf, type Element, element, escapeAttribute, escapeText,
  textOf } from "./element.ts"

/** The children of the item that the service reads. */
type ItemField = "from" | "description" | "url" | "password" | "content"

/** The field that a child element of an item holds; undefined for an unknown element. */
export const fieldOf = (name: string): ItemField | undefined => {
  switch (name) {
    case "description":
    case "url":
    case "password":
    case "content":
    case "from":
      return name
    default:
      return undefined
  }
}

/** Content that the notification carries inline: `text` is base64 if `encoding` is. */
export interface ParsedInlineContent {
  readonly type: string
  readonly encoding: "base64" | undefined
  readonly text: string
}

/**
 * A notification as a client posted it. `to` is empty unless an outgoing mailbox received it.
 * `extra` and `rootExtra` hold the unknown elements of the item and of the root as XML text.
 * `itemAttributes` is attribute text with a leading space; it includes the root's namespaces.
 */
export interface NotificationDocument {
  readonly to: ReadonlyArray<string>
  /** `<notification from="true">`: the sender wants the outgoing mailbox to be named. */
  readonly from: boolean
  /** `item/from`: the outgoing mailbox that relayed it. */
  readonly sender: string | undefined
  readonly description: string
  readonly url: string
  readonly password: string | undefined
  readonly content: ParsedInlineContent | undefined
  readonly itemAttributes: string
  readonly fieldAttributes: Readonly<Record<string, string>> | undefined
  readonly extra: string
  readonly rootExtra: string
  /** Where the client wrote the item as it is stored. A changed copy of the document has none. */
  readonly written?: WrittenItem | undefined
}

/** An `item` as a client wrote it, before and after the text of its password. */
export interface WrittenItem {
  readonly before: string
  /** Empty without a password. */
  readonly after: string
}

/** The document breaks a rule (422): `rule` names the rule, `detail` explains it. */
export interface RuleFault {
  readonly _tag: "RuleBroken"
  readonly rule: string
  readonly detail: string
}

/** A check throws this; `DocumentParser` returns it as a `RuleFault`. */
export class RuleViolation extends Error {
  readonly rule: string
  constructor(rule: string, detail: string) {
    super(detail)
    this.rule = rule
  }
}

/** The stored fragment would be too large; `DocumentParser` returns it as `TooLarge`. */
export class FragmentTooLarge extends Error {}

// eslint-disable-next-line no-control-regex
const notInUri = /[\u0000- "<>\\^`{|}\u007f\ufffe\uffff]|\p{Surrogate}/u

/** Whether a URI may hold all characters of the text. Non-ASCII characters are accepted (IRIs). */
export const isUri = (text: string): boolean => !notInUri.test(text)

/** The text, if it can be a URI reference; it may be relative. */
const checkUri = (what: string, text: string): string => {
  if (text === "") throw new RuleViolation("uri", `${what} is empty`)
  if (text.length > uriCharsMax) {
    throw new RuleViolation("uri", `${what} is longer than ${uriCharsMax}`)
  }
  if (!isUri(text)) throw new RuleViolation("uri", `${what} is not a URI`)
  return text
}

/** Attributes as XML text, each with a leading space, without the `excluded` ones. */
const attributesText = (
  attributes: Readonly<Record<string, string>>,
  excluded?: (name: string) => boolean
): string => {
  let text = ""
  for (const key in attributes) {
    if (excluded?.(key) === true) continue
    text += ` ${key}="${escapeAttribute(attributes[key] ?? "")}"`
  }
  return text
}

/** The attributes of an element that declare namespaces. */
const namespacesOf = ({ attributes }: Element): Readonly<Record<string, string>> =>
  Object.fromEntries(
    Object.entries(attributes).filter(([key]) => key === "xmlns" || key.startsWith("xmlns:"))
  )

/** The child elements of a notification or item, which hold no text between them. */
const elementsIn = (parent: Element): ReadonlyArray<Element> => {
  if (parent.children.some((child) => typeof child === "string" && /[^ \t\r\n]/.test(child))) {
    throw new RuleViolation("stray-text", `${parent.name} holds text between its elements`)
  }
  return childrenOf(parent)
}

const textIn = (field: Element): string => {
  if (field.children.some((child) => typeof child !== "string")) {
    throw new RuleViolation("text-only", `${field.name} can only hold text`)
  }
  return textOf(field)
}

const base64Pattern = /^[A-Za-z0-9+/]*={0,2}$/

const inlineContentOf = (content: Element): ParsedInlineContent => {
  const text = textIn(content)
  const type = content.attributes["type"]?.trim()
  if (type === undefined || !/^[^\s/]+\/[^\s/]+/.test(type)) {
    throw new RuleViolation("content-type", "item/content needs a media type in its type attribute")
  }
  const encoding: string | undefined = content.attributes["encoding"]
  if (encoding === undefined) return { type, encoding, text }
  if (encoding !== "base64") {
    throw new RuleViolation("content-encoding", "the encoding of item/content can only be base64")
  }
  const packed = text.replace(/\s+/g, "")
  if (packed.length % 4 !== 0 || !base64Pattern.test(packed)) {
    throw new RuleViolation("content-encoding", "item/content is not valid base64")
  }
  return { type, encoding, text: packed }
}

/** The attributes of the known fields of an item, as text; undefined if there are none. */
const fieldAttributesOf = (
  fields: ReadonlyMap<ItemField, Element>
): Record<string, string> | undefined => {
  let all: Record<string, string> | undefined
  for (const [name, { attributes }] of fields) {
    const text = attributesText(
      attributes,
      (key) => name === "content" && (key === "type" || key === "encoding")
    )
    if (text !== "") (all ??= Object.create(null) as Record<string, string>)[name] = text
  }
  return all
}

type ItemPart = Omit<NotificationDocument, "to" | "from" | "itemAttributes" | "rootExtra">

const readItem = (item: Element, sources: ReadonlyMap<Element, string>): ItemPart => {
  const fields = new Map<ItemField, Element>()
  let extra = ""
  for (const child of elementsIn(item)) {
    const field = fieldOf(child.name)
    if (field === undefined) extra += sources.get(child) ?? ""
    else if (fields.has(field)) throw new RuleViolation("duplicate", `item/${field} occurs twice`)
    else fields.set(field, child)
  }
  const read = (name: ItemField): string | undefined => {
    const field = fields.get(name)
    return field === undefined ? undefined : textIn(field)
  }
  const description = read("description")
  const url = read("url")?.trim()
  const sender = read("from")?.trim()
  const content = fields.get("content")
  if (description === undefined) {
    throw new RuleViolation("description", "item/description is required")
  }
  if (!url && content === undefined) {
    const detail = url === undefined ? "item/url is required" : "item/url is empty, without content"
    throw new RuleViolation("url", detail)
  }
  return {
    sender: sender === undefined ? undefined : checkUri("item/from", sender),
    description,
    url: url ? checkUri("item/url", url) : "",
    password: read("password")?.trim(),
    content: content === undefined ? undefined : inlineContentOf(content),
    fieldAttributes: fieldAttributesOf(fields),
    extra
  }
}

interface FragmentLimits {
  readonly recipientsMax: number
  readonly fragmentBytesMax: number
}

/**
 * Reads the elements of a notification. `sources` has the source text of the children of the root
 * and of the item; unknown ones stay as they are, those beside the item with the namespaces of the
 * root. Throws a `RuleViolation`, or `FragmentTooLarge`.
 */
export const readNotificationElement = (
  root: Element,
  sources: ReadonlyMap<Element, string>,
  { fragmentBytesMax, recipientsMax }: FragmentLimits
): NotificationDocument => {
  if (root.name !== "notification") {
    throw new RuleViolation("root", `the root element is ${root.name}, not notification`)
  }
  const namespaces = namespacesOf(root)
  const missingNamespaces = ({ attributes }: Element) =>
    attributesText(namespaces, (key) => Object.hasOwn(attributes, key))
  const to: Array<string> = []
  let item: Element | undefined
  let rootExtra = ""
  for (const child of elementsIn(root)) {
    if (child.name === "to") {
      if (to.length === recipientsMax) {
        throw new RuleViolation(
          "recipients",
          `there are more than ${recipientsMax} to elements (RECIPIENTS_MAX): send to the others ` +
            "by another notification"
        )
      }
      to.push(checkUri(`to number ${to.length + 1}`, textIn(child).trim()))
    } else if (child.name !== "item") {
      const afterName = (sources.get(child) ?? "").slice(1 + child.name.length)
      rootExtra += `<${child.name}${missingNamespaces(child)}${afterName}`
      // Each child repeats the namespaces: all of them together can be gigabytes.
      if (rootExtra.length > fragmentBytesMax) throw new FragmentTooLarge()
    } else if (item === undefined) item = child
    else throw new RuleViolation("one-item", "there is more than one item")
  }
  if (item === undefined) throw new RuleViolation("item", "item is required")
  return {
    to,
    from: root.attributes["from"]?.trim() === "true",
    itemAttributes: attributesText(item.attributes) + missingNamespaces(item),
    ...readItem(item, sources),
    rootExtra
  }
}

/**
 * The notification as it is stored, without `to`: `<item>…</item>`, then the unknown elements of
 * the root. The item holds its known fields first, then its unknown elements unchanged. A listing
 * concatenates these fragments inside its `notification` elements. `seal` encrypts a password.
 */
export const storedFragment = (document: NotificationDocument, seal: SealPassword): string => {
  const { fieldAttributes: attributes, password, sender, written } = document
  if (written !== undefined) {
    const { after, before } = written
    const fragment = before + after
    return password === undefined || password === ""
      ? fragment
      : withSealedPassword(fragment, before.length, seal(escapeText(password)))
  }
  let text = `<item${document.itemAttributes}><description${attributes?.["description"] ?? ""}>` +
    escapeText(document.description) + `</description><url${attributes?.["url"] ?? ""}>` +
    escapeText(document.url) + "</url>"
  let sealed: string | undefined
  let position = 0
  if (password !== undefined) {
    text += `<password${attributes?.["password"] ?? ""}>`
    position = text.length
    if (password !== "") sealed = seal(escapeText(password))
    text += "</password>"
  }
  if (sender !== undefined) {
    text += `<from${attributes?.["from"] ?? ""}>${escapeText(sender)}</from>`
  }
  text += `${contentFragment(document)}${document.extra}</item>${document.rootExtra}`
  return sealed === undefined ? text : withSealedPassword(text, position, sealed)
}

const contentFragment = (
  { content, fieldAttributes }: NotificationDocument
): string => {
  if (content === undefined) return ""
  const encoding = content.encoding === undefined ? "" : ` encoding="${content.encoding}"`
  return `<content type="${escapeAttribute(content.type)}"${encoding}` +
    `${fieldAttributes?.["content"] ?? ""}>${escapeText(content.text)}</content>`
}

/** A notification that the service builds itself, for example from the fields of a form. */
export const notificationElement = (fields: {
  readonly to?: ReadonlyArray<string>
  readonly from?: boolean
  readonly description: string
  readonly url: string
  readonly content?: { readonly type: string; readonly text: string } | undefined
}): Element =>
  element(
    "notification",
    { from: fields.from === true ? "true" : undefined },
    ...(fields.to ?? []).map((uri) => element("to", {}, uri)),
    element(
      "item",
      {},
      element("description", {}, fields.description),
      element("url", {}, fields.url),
      fields.content === undefined
        ? undefined
        : element("content", { type: fields.content.type }, fields.content.text)
    )
  )
