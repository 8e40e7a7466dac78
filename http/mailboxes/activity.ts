/**
 * What consumers of Linked Data Notifications read (§3.3.2): a mailbox as an `ldp:contains` list,
 * a notification as the JSON-LD that was posted, or else as an Announce of ActivityStreams 2.0.
 */
import { childOf, childrenOf, type Element, parseFragment, textOf } from "../xml.ts"
import { linkedDataOf } from "./linked-data.ts"
import type { ListingPage, MailboxEntry } from "./listing.ts"
import type { MailboxRef } from "./reader.ts"

const uriOf = (place: MailboxRef, entry: MailboxEntry): string =>
  `${place.here}/notifications/${entry.id}`

const written = (document: unknown): string => `${JSON.stringify(document)}\n`

/** A page of the mailbox, newest first; what more there is has a Link with rel=next. */
export const inboxDocument = (place: MailboxRef, { entries }: ListingPage): string =>
  written({
    "@context": "http://www.w3.org/ns/ldp",
    "@id": place.here,
    contains: entries.map((entry) => uriOf(place, entry)).toReversed()
  })

const textIn = (item: Element, name: string): string | undefined => {
  const child = childOf(item, name)
  return child === undefined ? undefined : textOf(child)
}

/** What is announced: the message by its URI, with the content that came with it, if it is text. */
const objectOf = (item: Element): unknown => {
  const url = textIn(item, "url")
  const content = childOf(item, "content")
  if (content === undefined || content.attributes["encoding"] !== undefined) return url
  return {
    id: url,
    type: "Object",
    mediaType: content.attributes["type"],
    content: textOf(content)
  }
}

/** Where a notification is, and since when; one under way is nowhere yet. */
interface Standing {
  readonly id?: string
  readonly target: string
  readonly published?: string
}

const announce = (fragment: string, { id, published, target }: Standing): unknown => {
  const root: Element = {
    name: "notification",
    attributes: {},
    children: parseFragment(fragment)
  }
  const [item] = childrenOf(root, "item")
  if (item === undefined) throw new Error("a stored notification has no item")
  return {
    "@context": "https://www.w3.org/ns/activitystreams",
    id,
    type: "Announce",
    summary: escaped(textIn(item, "description") ?? ""),
    actor: textIn(item, "from"),
    object: objectOf(item),
    target,
    published
  }
}

/** A summary of ActivityStreams is HTML (Vocabulary §4), a description is plain. */
const escaped = (text: string): string =>
  text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;")

/** One notification as JSON-LD. */
export const activityDocument = (place: MailboxRef, entry: MailboxEntry): string =>
  activityOf(entry.fragment, {
    id: uriOf(place, entry),
    target: place.href,
    published: entry.received
  })

/** The JSON-LD that a notification was posted with, or an Announce of what it says. */
export const activityOf = (fragment: string, standing: Standing): string =>
  linkedDataOf(fragment) ?? written(announce(fragment, standing))
