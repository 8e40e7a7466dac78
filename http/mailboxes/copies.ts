/**
 * Copies that eager fetches have kept (protocol §1.2): shown with their notification as
 * `<cached href type length/>`.
 */
import { Effect } from "effect"
import { type CachedContent, cachedKey, cachedTable } from "../../actors/errand/protocol.ts"
import type { MailboxView } from "../../actors/mailbox/protocol.ts"
import type { HandlerFailure } from "../failures.ts"
import { type Service, uri } from "../service.ts"
import { element, writeElement } from "../xml.ts"
import type { MailboxEntry } from "./listing.ts"

const numberOf = (key: string): number => Number(key.slice(key.lastIndexOf("/") + 1))

const copyOf = (service: Service, value: string): string => {
  // Written by the errand that keeps the copy, and by nobody else.
  const { contentId, lengthBytes, type } = JSON.parse(value) as CachedContent
  const href = uri(service, `/content/${contentId}`)
  return writeElement(element("cached", { href, type, length: lengthBytes }))
}

/** The entries, ascending, each with its copy if there is one. */
export const withCopies = (
  service: Service,
  name: string,
  { fetched }: MailboxView,
  entries: ReadonlyArray<MailboxEntry>
): Effect.Effect<ReadonlyArray<MailboxEntry>, HandlerFailure> => {
  const first = entries[0]
  // Nothing is looked for in a mailbox that has never fetched.
  if (fetched === 0 || first === undefined) return Effect.succeed(entries)
  const range = { prefix: `${name}/`, after: cachedKey(name, first.n - 1), limit: entries.length }
  return Effect.map(service.records.range(cachedTable, range), (rows) => {
    const copies = new Map(rows.map(({ key, value }) => [numberOf(key), value]))
    return entries.map((entry) => {
      const copy = copies.get(entry.n)
      if (copy === undefined) return entry
      return { ...entry, fragment: entry.fragment + copyOf(service, copy) }
    })
  })
}
