/**
 * The index of an outgoing mailbox, newest first. The value of an entry is a hint of the status of
 * its notification: the actor decides, and only `sent` is final. After a follow-up the actor writes
 * `waiting` in its place, with each timer. `waiting` may be the hint of a notification that has
 * ended, and `failed` of one that is tried again.
 */
import { Effect } from "effect"
import { cursorOf, cursorTimeDigits } from "../../../actors/index.ts"
import { outgoingKeysTable, outgoingTable } from "../../../actors/notification/index.ts"
import type { RecordChange } from "../../../runtime/index.ts"
import { abandonedEntryMs } from "../../limits.ts"
import { type IndexEntry, readEntries } from "../../newest-first-index.ts"
import type { HandlerFailure, Service } from "../../pipeline/index.ts"

/**
 * Enters a notification before it is queued, and returns the entry's key. A keyed request stores
 * that key too: when it is repeated after a crash it finds the entry and writes no second one.
 */
export const enterOutgoing = Effect.fnUntraced(function*(
  { nowMs, records }: Service,
  account: string,
  id: string,
  isKeyed: boolean
): Effect.fn.Return<string, HandlerFailure> {
  const requestKey = `${account}/${id}`
  const stored = isKeyed ? yield* records.get(outgoingKeysTable, requestKey) : undefined
  const key = stored ?? `${account}/${cursorOf(nowMs(), id)}`
  const entry = { table: outgoingTable, key, value: "waiting" }
  yield* records.write(
    isKeyed ? [entry, { table: outgoingKeysTable, key: requestKey, value: key }] : [entry]
  )
  return key
})

/** Deletes the key of a keyed request: its notification is queued, and a repetition finds it. */
export const deleteRequestKey = (
  { records }: Service,
  account: string,
  id: string
): Effect.Effect<void> => Effect.ignore(records.write([keyRemoval(account, id)]))

const keyRemoval = (account: string, id: string): RecordChange => ({
  table: outgoingKeysTable,
  key: `${account}/${id}`,
  value: null,
  markerExpires: true
})

/** Changes the hint of entries to `waiting`. */
export const markWaiting = (
  { records }: Service,
  account: string,
  cursors: ReadonlyArray<string>
): Effect.Effect<void, HandlerFailure> =>
  cursors.length === 0 ? Effect.void : records.write(
    cursors.map((cursor) => ({
      table: outgoingTable,
      key: `${account}/${cursor}`,
      value: "waiting"
    }))
  )

/**
 * Removes an entry, and the key of a request that was never repeated; a failure leaves a stale
 * entry, which the next listing removes.
 */
export const removeOutgoing = (
  { records }: Service,
  account: string,
  cursor: string
): Effect.Effect<void> =>
  Effect.ignore(records.write([
    { table: outgoingTable, key: `${account}/${cursor}`, value: null, markerExpires: true },
    keyRemoval(account, cursor.slice(cursorTimeDigits + 1))
  ]))

/** Removes an entry whose notification is gone, or was never queued because of a crash. */
export const removeStale = (
  service: Service,
  account: string,
  { atMs, cursor }: IndexEntry,
  reason: string
): Effect.Effect<void> =>
  reason === "Gone" || (reason === "NotFound" && service.nowMs() - atMs > abandonedEntryMs)
    ? removeOutgoing(service, account, cursor)
    : Effect.void

/** The entries after a cursor. */
export const readOutgoing = (
  service: Service,
  account: string,
  after: string | undefined,
  limit: number
): Effect.Effect<ReadonlyArray<IndexEntry>, HandlerFailure> =>
  readEntries(service, { table: outgoingTable }, account, { after, limit })
