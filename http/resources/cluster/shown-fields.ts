/**
 * What the inspector shows of a state or log item (protocol §7). An admin finds faults with it, and
 * does not read what users send to each other. Of a kind that may have such text, the inspector
 * shows numbers, and the texts of the fields that are named here. A new field is hidden until it is
 * named.
 */
import { isRemoval, itemAtMs } from "../../../actors/mailbox/index.ts"
import { accountKind, auditKind, mailboxKind, parseUrl, readinessKind,
  sessionKind } from "../../../actors/index.ts"
import { isoTime, printable } from "../../formats/xml/index.ts"
import { inspectedItemCharsMax } from "../../limits.ts"
import type { LogItem } from "../../../runtime/index.ts"

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

/** The value of a field; the items of a list have the field of the list. */
const shownValue = (field: string, value: unknown, isOpen: boolean): unknown => {
  if (value !== null && secretField.test(field)) return "not shown"
  if (typeof value === "string") return isOpen ? value : shownText(field, value)
  if (Array.isArray(value)) return value.map((one: unknown) => shownValue(field, one, isOpen))
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, one]) => [
      isOpen || fieldPattern.test(name) ? name : notShown(name),
      shownValue(name, one, isOpen)
    ])
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
    const value = shownValue("", JSON.parse(text), openKinds.has(kind))
    return printable(JSON.stringify(value, null, indentation))
  } catch {
    return undefined
  }
}

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
