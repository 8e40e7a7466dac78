/**
 * The index of an outgoing mailbox, newest first. The value of an entry is a hint of the status of
 * its notification: the actor decides, and only `sent` is final. `waiting` may be the hint of a
 * notification that has ended, and `failed` of one that is tried again.
 */
import { Effect } from "effect"
import { cursorOf } from "../../../actors/index.ts"
import { outgoingTable } from "../../../actors/notification/index.ts"
import { abandonedEntryMs } from "../../limits.ts"
import { type IndexEntry, readEntries } from "../../newest-first-index.ts"
import type { HandlerFailure, Service } from "../../pipeline/index.ts"

/** `<account>/<id>` of a keyed request until its notification is queued: the entry's key. */
const keysTable = "outgoing-keys"

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
  const stored = isKeyed ? yield* records.get(keysTable, requestKey) : undefined
  const key = stored ?? `${account}/${cursorOf(nowMs(), id)}`
  const entry = { table: outgoingTable, key, value: "waiting" }
  yield* records.write(
    isKeyed ? [entry, { table: keysTable, key: requestKey, value: key }] : [entry]
  )
  return key
})

/** Deletes the key of a keyed request: its notification is queued, and a repetition finds it. */
export const deleteRequestKey = (
  { records }: Service,
  account: string,
  id: string
): Effect.Effect<void> =>
  Effect.ignore(
    records.write([{ table: keysTable, key: `${account}/${id}`, value: null, markerExpires: true }])
  )

const writeEntries = (
  { records }: Service,
  account: string,
  cursors: ReadonlyArray<string>,
  value: "waiting" | null
): Effect.Effect<void, HandlerFailure> =>
  cursors.length === 0 ? Effect.void : records.write(
    cursors.map((cursor) => ({
      table: outgoingTable,
      key: `${account}/${cursor}`,
      value,
      markerExpires: true
    }))
  )

/** Changes the hint of entries to `waiting`. */
export const markWaiting = (service: Service, account: string, cursors: ReadonlyArray<string>) =>
  writeEntries(service, account, cursors, "waiting")

/** Removes an entry; a failure leaves a stale entry, which the next listing removes. */
export const removeOutgoing = (
  service: Service,
  account: string,
  cursor: string
): Effect.Effect<void> => Effect.ignore(writeEntries(service, account, [cursor], null))

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
