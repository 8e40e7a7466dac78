/**
 * The document of a push (protocol §1.4): what has changed in a mailbox, in the order of its log.
 * The document's time is a cursor of the mailbox, from which a client can continue to read. Pure.
 */
import type { LogItem } from "../../runtime/index.ts"
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

const changed = (links: Links, mailbox: string, time: string, changes: string): string =>
  `<?xml version="1.0" encoding="UTF-8"?>\n` +
  `<changed mailbox="${attribute(links.mailbox(mailbox))}" time="${time}">${changes}</changed>`

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

/** The last change of a mailbox: it has been removed, with all in it. */
export const deletedDocument = (
  links: Links,
  mailbox: string,
  upTo: number,
  atMs: number
): string => changed(links, mailbox, formatCursor(atMs, upTo), "<deleted/>")
