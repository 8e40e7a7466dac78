/**
 * The documents of a push (protocol §1.4): what has changed in a mailbox, in the order of its log.
 * The document's time is a cursor of the mailbox, from which a client can continue to read. Pure.
 */
import type { LogItem } from "../../runtime/index.ts"
import { webPushBytesMax } from "../limits.ts"
import type { Links } from "../links.ts"
import { decodeItem, decodeRemoval, formatCursor, isRemoval,
  notificationId } from "../mailbox/index.ts"

const escaped: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", "\"": "&quot;" }

const attribute = (text: string): string => text.replace(/[&<"]/g, (one) => escaped[one] ?? one)

/** One log item as XML. The log has the fragment of a notification in this form. */
const changeOf = (links: Links, mailbox: string, { n, value }: LogItem): string => {
  const hrefOf = (id: string): string => attribute(links.stored(mailbox, id))
  if (isRemoval(value)) {
    return decodeRemoval(value).map((id) => `<removed href="${hrefOf(id)}"/>`).join("")
  }
  const { atMs, fragment, idRandom } = decodeItem(value)
  const received = new Date(atMs).toISOString()
  const href = hrefOf(notificationId(n, idRandom))
  return `<notification href="${href}" received="${received}">${fragment}</notification>`
}

const changed = (
  links: Links,
  mailbox: string,
  time: string,
  changes: string,
  mark = ""
): string =>
  `<?xml version="1.0" encoding="UTF-8"?>\n` +
  `<changed mailbox="${attribute(links.mailbox(mailbox))}" time="${time}"${mark}>` +
  `${changes}</changed>`

/** The changes in these log items; the last one is item `upTo`, made at `atMs`. */
export const changesDocument = (
  links: Links,
  mailbox: string,
  items: ReadonlyArray<LogItem>,
  upTo: number,
  atMs: number
): string =>
  changed(
    links,
    mailbox,
    formatCursor(atMs, upTo),
    items.map((item) => changeOf(links, mailbox, item)).join("")
  )

/** A notification in a push to a browser. */
interface NewestNotification {
  readonly href: string
  readonly received: string
  readonly description?: string
}

const bytesOf = (text: string): number => Buffer.byteLength(text)

/** The text without its end, so that its JSON has at most `bytesMax` bytes. */
const shortened = (text: string, bytesMax: number): string | undefined => {
  if (bytesOf(JSON.stringify(text)) <= bytesMax) return text
  const characters = [...text]
  let [fits, excess] = [0, characters.length]
  const upTo = (count: number): string => `${characters.slice(0, count).join("")}…`
  while (excess - fits > 1) {
    const middle = Math.floor((fits + excess) / 2)
    if (bytesOf(JSON.stringify(upTo(middle))) <= bytesMax) fits = middle
    else excess = middle
  }
  return fits === 0 ? undefined : upTo(fits)
}

/** Of the changes that a push to a browser stands for. */
interface PushedChanges {
  /** How many notifications they have. */
  readonly count: number
  /** The cursor after them. */
  readonly time: string
}

/** What a browser gets, in the JSON of `<changed>`, within {@link webPushBytesMax}. */
const browserJson = (
  mailbox: string,
  { count, time }: PushedChanges,
  newest: NewestNotification
): string => {
  const { description = "", ...notification } = newest
  const several = count === 1 ? {} : { count: String(count) }
  const alone = { mailbox, time, ...several, notification }
  const left = webPushBytesMax - bytesOf(JSON.stringify(alone)) - bytesOf(`,"description":`)
  const shown = description === "" ? undefined : shortened(description, left)
  const whole = shown === undefined
    ? alone
    : { ...alone, notification: { ...notification, description: shown } }
  const text = JSON.stringify(whole)
  // A base URL of a thousand characters leaves room for the mailbox only.
  return bytesOf(text) <= webPushBytesMax ? text : JSON.stringify({ mailbox, time })
}

/** What a browser gets of these changes: their newest notification, its description shortened. */
export const browserDocument = (
  links: Links,
  mailbox: string,
  newest: LogItem,
  descriptionOf: (fragment: string) => string | undefined,
  changes: PushedChanges
): string => {
  const { atMs: receivedMs, fragment, idRandom } = decodeItem(newest.value)
  const description = descriptionOf(fragment)
  return browserJson(links.mailbox(mailbox), changes, {
    href: links.stored(mailbox, notificationId(newest.n, idRandom)),
    received: new Date(receivedMs).toISOString(),
    ...description === undefined ? {} : { description }
  })
}

/** Makes a document without notifications: after item `upTo`, made at `atMs`. */
type DocumentAtCursor = (links: Links, mailbox: string, upTo: number, atMs: number) => string

const browserMark =
  (mark: Readonly<Record<string, "true">>): DocumentAtCursor => (links, mailbox, upTo, atMs) =>
    JSON.stringify({ mailbox: links.mailbox(mailbox), time: formatCursor(atMs, upTo), ...mark })

const changedAt =
  (changes: string, mark?: string): DocumentAtCursor => (links, mailbox, upTo, atMs) =>
    changed(links, mailbox, formatCursor(atMs, upTo), changes, mark)

/** The last push to a browser: its mailbox has been removed. */
export const deletedBrowserDocument = browserMark({ deleted: "true" })

/** The last change of a mailbox: it has been removed, with all in it. */
export const deletedDocument = changedAt("<deleted/>")

/** A test event: no change. */
export const testDocument = changedAt("", ` test="true"`)

/** A test event for a browser. */
export const testBrowserDocument = browserMark({ test: "true" })
