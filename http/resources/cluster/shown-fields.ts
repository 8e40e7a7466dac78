/**
 * What the inspector shows of a state, log item or message (protocol §7). An admin finds faults
 * with it, and does not read what users send to each other. Of a kind that may have such text, the
 * inspector shows numbers, and the texts of the fields that are named here. A new field is hidden
 * until it is named.
 */
import { isRemoval, itemAtMs } from "../../../actors/mailbox/index.ts"
import { accountKind, auditKind, idempotencyKind, mailboxKind, parseUrl, readinessKind, sessionKind,
  throttleKind } from "../../../actors/index.ts"
import { isoTime, printable } from "../../formats/xml/index.ts"
import { inspectedItemCharsMax } from "../../limits.ts"
import { type Address, isRefusal, type LogItem, type MessageTexts,
  type Tagged } from "../../../runtime/index.ts"

/** Fields with secrets, encrypted or hashed, which nobody needs to find a fault. */
const secretField = /hash$|secret|password|challenge$|fingerprint|^sealed$|^tried$|^answer$/i

/**
 * The kinds of which all but secrets is shown: sessions are public, and the rest is for admins. A
 * new kind is not among them until it is named.
 */
const openKinds: ReadonlySet<string> = new Set([
  accountKind,
  auditKind,
  readinessKind,
  sessionKind
])

/** Fields whose texts the service makes or chooses from a list, and names of accounts. */
const shownTexts: ReadonlySet<string> = new Set([
  "_tag",
  "account",
  "blobId",
  "deposit",
  "fetch",
  "follows",
  "form",
  "kind",
  "mailbox",
  "mode",
  "owner",
  "receipts",
  "registrations",
  "requestId",
  "retention",
  "status",
  "topicFormat",
  "traceId"
])

/** Fields with a URI that users chose: where it leads may be why something fails. */
const originFields: ReadonlySet<string> = new Set(["callback", "href", "location", "to", "uri"])

const fieldPattern = /^[_a-z][A-Za-z0-9]{0,39}$/

const notShown = (text: string): string => `not shown, ${text.length} characters`

const shownText = (field: string, text: string): string => {
  if (shownTexts.has(field)) return text
  const origin = originFields.has(field) ? parseUrl(text)?.origin ?? "null" : "null"
  return origin === "null"
    ? notShown(text)
    : `${origin}, the rest of ${text.length} characters not shown`
}

/** How texts and the names of fields are shown. */
interface TextRules {
  readonly text: (field: string, text: string) => string
  readonly name: (name: string) => string
}

/** Of a kind of which all but secrets is shown. */
const openRules: TextRules = { text: (_, text) => text, name: (name) => name }

const closedRules: TextRules = {
  text: shownText,
  name: (name) => fieldPattern.test(name) ? name : notShown(name)
}

/** A name, an id or a word of a list. A path or a URI, which may have a secret, is none. */
const plainText = /^[A-Za-z0-9._=-]{1,200}$/

/**
 * Of a message of any kind: it has what its sender wrote, such as an answer of a session, or the
 * secret to check. A named field is shown if its text is plain, too.
 */
const messageRules: TextRules = {
  text: (field, text) =>
    shownTexts.has(field) && !plainText.test(text) ? notShown(text) : shownText(field, text),
  name: closedRules.name
}

/** Whether it is of a struct; an instance of a class may be bytes, or a secret. */
const isPlainObject = (value: object): boolean => {
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

/** The value of a field; the items of a list have the field of the list. */
const shownValue = (field: string, value: unknown, rules: TextRules): unknown => {
  if (value === null || value === undefined) return value
  if (secretField.test(field)) return "not shown"
  if (typeof value === "string") return rules.text(field, value)
  if (typeof value === "number" || typeof value === "boolean") return value
  if (Array.isArray(value)) return value.map((one: unknown) => shownValue(field, one, rules))
  if (typeof value !== "object" || !isPlainObject(value)) return "not shown"
  return Object.fromEntries(
    Object.entries(value).map(([name, one]) => [rules.name(name), shownValue(name, one, rules)])
  )
}

/**
 * The JSON of a kind as admins may see it, with as many spaces of indentation; undefined for a text
 * that is no JSON, since nobody knows what is in it.
 */
export const shownJson = (
  kind: string,
  text: string,
  indentation: number
): string | undefined => {
  try {
    const rules = openKinds.has(kind) ? openRules : closedRules
    const value = shownValue("", JSON.parse(text), rules)
    return printable(JSON.stringify(value, null, indentation))
  } catch {
    return undefined
  }
}

/** A list of numbers in indented JSON, which has a line for each. */
const numberList = /\[\n\s+(-?\d[\d.,\s-]*?)\s+\]/g

/** Indented JSON with each list of numbers on one line. */
export const withShortLists = (json: string): string =>
  json.replace(numberList, (_, numbers: string) => `[${numbers.replaceAll(/\s+/g, " ")}]`)

/** The last time that a Date can have. */
const dateMaxMs = 8.64e15

/** A notification or a removal in the log of a mailbox: what it is, and when it came. */
const shownMailboxItem = (value: string): string => {
  const atMs = itemAtMs(value)
  // A corrupted item, which may be what is looked for, has no time, or one beyond any date.
  if (!(Math.abs(atMs) < dateMaxMs)) return notShown(value)
  const what = isRemoval(value) ? "a removal" : "a notification"
  return `${what} of ${isoTime(atMs)}: ${notShown(value)}`
}

/** A log item as documents show it. */
export const shownItem = (kind: string, { value }: LogItem): string => {
  if (kind === mailboxKind) return shownMailboxItem(value)
  const text = shownJson(kind, value, 0) ??
    (openKinds.has(kind) ? printable(value) : notShown(value))
  return text.length > inspectedItemCharsMax ? `${text.slice(0, inspectedItemCharsMax)}…` : text
}

/** The fields of a message as documents show them. */
const shownMessage = (message: Tagged): string => {
  try {
    const { _tag, ...fields } = message
    return printable(JSON.stringify(shownValue("", fields, messageRules)))
  } catch {
    return "not shown"
  }
}

/**
 * The kinds whose ids are made of what anybody has typed: the mailbox of a path beside a key, or
 * the hash of a name that was tried.
 */
const typedIdKinds: ReadonlySet<string> = new Set([idempotencyKind, throttleKind])

/** Whether messages may show the id of an actor; `isAnswered`: it has replied or stored. */
export const isIdShown = ({ kind }: Address, isAnswered: boolean): boolean =>
  isAnswered && !typedIdKinds.has(kind)

/** The name of a message, a reply or a reason: the service has lists of them. */
const knownName = /^[A-Za-z]{1,64}$/

const shownName = (name: unknown): string | undefined =>
  typeof name === "string" && knownName.test(name) ? name : undefined

const tagOf = (reply: unknown): unknown =>
  typeof reply === "object" && reply !== null && "_tag" in reply ? reply._tag : undefined

/**
 * What a node of the service keeps of a message: its fields as they are shown, and of its outcome
 * the name of the reply, or of the reason why there is none. No other text is in its memory longer
 * than the message is.
 */
export const recordedTexts: MessageTexts = {
  ofMessage: (_, message) => shownMessage(message),
  ofOutcome: (failure, reply) =>
    shownName(failure?._tag ?? (isRefusal(reply) ? reply.reason : tagOf(reply)))
}
