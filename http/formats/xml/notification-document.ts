/**
 * A notification as a document: its fields, the checks of each (protocol A2, A5), and the XML
 * fragment in which it is stored and served.
 */
import { uriCharsMax } from "../../limits.ts"
import { type Element, element, escapeAttribute, escapeText } from "./element.ts"

/** The elements that the service reads; `to` is a sibling of the item, the others its children. */
export type NotificationField = "to" | "from" | "description" | "url" | "password" | "content"

/** The field that a child element of an item holds; undefined for an unknown element. */
export const fieldOf = (name: string): NotificationField | undefined => {
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

/** Content that the notification carries inline: `text` is base64 if `encoding` says so. */
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
}

/** The document breaks a rule (422): `rule` names the rule, `detail` explains it. */
export interface RuleFault {
  readonly _tag: "RuleBroken"
  readonly rule: string
  readonly detail: string
}

/** A parser's callback throws this; the parser returns it as a `RuleFault`. */
export class RuleViolation extends Error {
  readonly rule: string
  constructor(rule: string, detail: string) {
    super(detail)
    this.rule = rule
  }
}

/** Attributes as XML text, each with a leading space, without the `excluded` ones. */
export const attributesText = (
  attributes: Readonly<Record<string, string>>,
  excluded?: ReadonlyArray<string>
): string => {
  let text = ""
  for (const key in attributes) {
    if (excluded?.includes(key)) continue
    text += ` ${key}="${escapeAttribute(attributes[key] ?? "")}"`
  }
  return text
}

const base64Pattern = /^[A-Za-z0-9+/]*={0,2}$/

/** The content of a complete `content` element; throws a `RuleViolation` for invalid base64. */
export const inlineContent = (
  type: string,
  encoding: "base64" | undefined,
  text: string
): ParsedInlineContent => {
  if (encoding === undefined) return { type, encoding, text }
  const packed = text.replace(/\s+/g, "")
  if (packed.length % 4 !== 0 || !base64Pattern.test(packed)) {
    throw new RuleViolation("content-encoding", "item/content is not valid base64")
  }
  return { type, encoding, text: packed }
}

// eslint-disable-next-line no-control-regex
const notInUri = /[\u0000- "<>\\^`{|}\u007f\ufffe\uffff]|\p{Surrogate}/u

/** Whether a URI may hold all characters of the text. Non-ASCII characters are accepted (IRIs). */
export const isUri = (text: string): boolean => !notInUri.test(text)

/** The text, if it can be a URI reference; else throws a `RuleViolation`. It may be relative. */
export const checkUri = (what: string, text: string): string => {
  if (text === "") throw new RuleViolation("uri", `${what} is empty`)
  if (text.length > uriCharsMax) {
    throw new RuleViolation("uri", `${what} is longer than ${uriCharsMax}`)
  }
  if (!isUri(text)) throw new RuleViolation("uri", `${what} is not a URI`)
  return text
}

/** The fields that the service replaces in a notification that it stores or relays. */
export interface FragmentChanges {
  /** Replaces `item/password`. */
  readonly password?: string | undefined
  /** Replaces `item/url`, after the service published inline content. */
  readonly url?: string | undefined
  /** Replaces `item/from`, when relaying. */
  readonly sender?: string | undefined
}

/**
 * The notification as it is stored, without `to`: `<item>…</item>`, then the unknown elements of
 * the root. The item holds its known fields first, then its unknown elements unchanged. A listing
 * concatenates these fragments inside its `notification` elements.
 */
export const storedFragment = (
  document: NotificationDocument,
  changes?: FragmentChanges
): string => {
  const attributes = document.fieldAttributes
  const password = changes?.password ?? document.password
  const sender = changes?.sender ?? document.sender
  let text = `<item${document.itemAttributes}><description${attributes?.["description"] ?? ""}>` +
    escapeText(document.description) + `</description><url${attributes?.["url"] ?? ""}>` +
    escapeText(changes?.url ?? document.url) + "</url>"
  if (password !== undefined) {
    text += `<password${attributes?.["password"] ?? ""}>${escapeText(password)}</password>`
  }
  if (sender !== undefined) {
    text += `<from${attributes?.["from"] ?? ""}>${escapeText(sender)}</from>`
  }
  if (document.content !== undefined) text += contentFragment(document)
  return `${text}${document.extra}</item>${document.rootExtra}`
}

const contentFragment = (document: NotificationDocument): string => {
  const content = document.content
  if (content === undefined) return ""
  const encoding = content.encoding === undefined ? "" : ` encoding="${content.encoding}"`
  return `<content type="${escapeAttribute(content.type)}"${encoding}` +
    `${document.fieldAttributes?.["content"] ?? ""}>${escapeText(content.text)}</content>`
}

/** A notification that the service builds itself, for example from the fields of a form. */
export const notificationElement = (fields: {
  readonly to?: ReadonlyArray<string>
  readonly from?: boolean
  readonly description: string
  readonly url: string
  readonly password?: string | undefined
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
      fields.password === undefined ? undefined : element("password", {}, fields.password),
      fields.content === undefined
        ? undefined
        : element("content", { type: fields.content.type }, fields.content.text)
    )
  )
