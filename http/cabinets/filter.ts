/** Which notifications a cabinet's query wants. */
import type { CabinetQuery } from "../../actors/cabinet/protocol.ts"
import type { MailboxEntry } from "../mailboxes/listing.ts"
import { type Element, parseFragment } from "../xml.ts"
import { timeOf } from "./cursor.ts"

export type EntryFilter = (entry: MailboxEntry) => boolean

const fold = (text: string): string => text.normalize("NFC").toLowerCase()

/** All text of some nodes, so that no text runs over from one element into the next. */
const textIn = (nodes: ReadonlyArray<Element | string>): string =>
  nodes.map((node) => typeof node === "string" ? node : textIn(node.children)).join("\n")

/** Whether an entry is wanted: received at the time or later, and with the text, in any case. */
export const filterOf = (query: CabinetQuery | undefined): EntryFilter => {
  const atMs = query?.since === undefined ? undefined : timeOf(query.since)?.atMs
  const wanted = query?.contains === undefined ? undefined : fold(query.contains)
  return (entry) =>
    (atMs === undefined || entry.atMs >= atMs) &&
    (wanted === undefined || fold(textIn(parseFragment(entry.fragment))).includes(wanted))
}
