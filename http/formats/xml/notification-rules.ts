/** What a notification document may hold, and the checks of its fields (protocol §1.2, §1.3). */
import { uriCharsMax } from "../../limits.ts"
import { escapeAttribute } from "./element.ts"

/** The elements that mean something in a notification; `to` stands beside the item. */
export type NotificationField = "to" | "from" | "description" | "url" | "password" | "content"

/** The field of an item that an element is. */
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

/** Content inside the notification itself: `text` is base64 when `encoding` says so. */
export interface ParsedInlineContent {
  readonly type: string
  readonly encoding: "base64" | undefined
  readonly text: string
}

/**
 * A notification as it was posted. `to` is empty unless it was meant for an outgoing mailbox.
 * `extra` and `rootExtra` are the unknown elements of the item and of the root, exactly as XML
 * text; `itemAttributes` is attribute text with a leading space, the root's namespaces among it.
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

/** A rule of the document that is broken (422): `rule` names it, `detail` says how. */
export interface RuleFault {
  readonly _tag: "RuleBroken"
  readonly rule: string
  readonly detail: string
}

/** Thrown inside the parser's callbacks; becomes a `RuleBroken`. */
export class RuleViolation extends Error {
  readonly rule: string
  constructor(rule: string, detail: string) {
    super(detail)
    this.rule = rule
  }
}

/** Attributes as XML text with a leading space each, besides the named ones. */
export const attributesText = (
  attributes: Readonly<Record<string, string>>,
  besides?: ReadonlyArray<string>
): string => {
  let text = ""
  for (const key in attributes) {
    if (besides?.includes(key)) continue
    text += ` ${key}="${escapeAttribute(attributes[key] ?? "")}"`
  }
  return text
}

const base64Pattern = /^[A-Za-z0-9+/]*={0,2}$/

/** The content that a closed `content` element stands for; refuses what is not base64. */
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

/** Whether all its characters may stand in a URI; those beyond ASCII too that XML can hold. */
export const isUri = (text: string): boolean => !notInUri.test(text)

/** A URI reference by its characters; relative ones are for the reader to judge. */
export const checkedUri = (what: string, text: string): string => {
  if (text === "") throw new RuleViolation("uri", `${what} is empty`)
  if (text.length > uriCharsMax) {
    throw new RuleViolation("uri", `${what} is longer than ${uriCharsMax}`)
  }
  if (!isUri(text)) throw new RuleViolation("uri", `${what} is not a URI`)
  return text
}
