/** What an account owns, of each kind, for the refusal of its removal. */
import { Effect } from "effect"
import { isOwned, type OwnedEntry, type OwnedResource,
  readOwned } from "../../../actors/account/index.ts"
import { askedAtOnceMax, pageEntriesDefault } from "../../limits.ts"
import type { HandlerFailure, Service } from "../../pipeline/index.ts"

/** The names of the kinds, for people: one, and several. */
const nouns: ReadonlyArray<readonly [kind: OwnedResource, one: string, several: string]> = [
  ["mailboxes", "mailbox", "mailboxes"],
  ["content", "content resource", "content resources"],
  ["outgoing", "sent notification", "sent notifications"],
  ["cabinets", "cabinet", "cabinets"],
  ["sessions", "session", "sessions"],
  ["queries", "query", "queries"]
]

/** The existing resources of a page of a listing; entries of others are hints that were left. */
const existingOf = (
  service: Service,
  account: string,
  kind: OwnedResource,
  entries: ReadonlyArray<OwnedEntry>
): Effect.Effect<ReadonlyArray<OwnedEntry>, HandlerFailure> =>
  Effect.map(
    Effect.forEach(
      entries,
      (entry) =>
        Effect.map(isOwned(service.system, account, kind, entry.id), (is) => is ? [entry] : []),
      { concurrency: askedAtOnceMax }
    ),
    (existing) => existing.flat()
  )

/** How many resources of a kind exist; of many it counts those of the first page that has one. */
const countOf = Effect.fnUntraced(function*(
  service: Service,
  account: string,
  kind: OwnedResource
): Effect.fn.Return<{ readonly count: number; readonly hasMore: boolean }, HandlerFailure> {
  let after: string | undefined
  for (;;) {
    const limit = pageEntriesDefault
    const entries = yield* readOwned(service.records, account, kind, { after, limit })
    const existing = yield* existingOf(service, account, kind, entries)
    after = entries.at(-1)?.key
    const hasMore = entries.length === limit
    if (!hasMore || existing.length > 0) return { count: existing.length, hasMore }
  }
})

/** What the account owns, for people; undefined if it owns nothing. */
export const describeOwned = Effect.fnUntraced(function*(
  service: Service,
  account: string
): Effect.fn.Return<string | undefined, HandlerFailure> {
  const parts: Array<string> = []
  for (const [kind, one, several] of nouns) {
    const { count, hasMore } = yield* countOf(service, account, kind)
    if (count === 0) continue
    parts.push(`${hasMore ? "at least " : ""}${count} ${count === 1 && !hasMore ? one : several}`)
  }
  return parts.length === 0 ? undefined : parts.join(", ")
})
