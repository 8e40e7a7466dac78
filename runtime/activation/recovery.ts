/** An actor as the store has it: its record, and the end of its log. */
import { Effect } from "effect"
import { type Address, type AnyBehavior, decodeStoredState, keyOf, type LogItem,
  type StorageFailure, StorageUnavailable, type Tagged } from "../actor/index.ts"
import { bytesPerStateChar } from "../limits.ts"
import type { StorageApi, StoredActor } from "../ports/index.ts"
import { DeduplicationWindow } from "./deduplication.ts"

/** A recovered actor: its record and the end of its log. */
export interface RecoveredActor {
  readonly state: Tagged
  /** About how many bytes the state takes in memory. */
  readonly bytes: number
  readonly revision: number
  readonly head: number
  readonly timer: number | undefined
  readonly recent: DeduplicationWindow | undefined
}

/** A defect of the store is not a defect of the actor. */
const recoveryAborted = (): Effect.Effect<never, StorageUnavailable> =>
  Effect.fail(new StorageUnavailable({ detail: "the store threw an error" }))

/** About how many bytes a state takes in memory; `text` is its record. */
export const bytesOf = (behavior: AnyBehavior, state: Tagged, text = ""): number =>
  behavior.bytesOf?.(state) ?? bytesPerStateChar * text.length

interface Read {
  readonly loaded: StoredActor
  readonly items: ReadonlyArray<LogItem>
}

/**
 * The record and the last items as of one moment. Between the two reads the store may keep a commit
 * of indeterminate outcome: then the log is longer than the record's head, and both are read again.
 */
const readBoth = Effect.fnUntraced(function*(
  storage: StorageApi,
  address: Address,
  count: number
): Effect.fn.Return<Read, StorageFailure> {
  for (;;) {
    const loaded = yield* Effect.suspend(() => storage.load(address))
    const { head } = loaded
    if (head === 0) return { loaded, items: [] }
    // One more than there should be, to see whether the log is longer by now.
    const limit = Math.min(count, head) + 1
    const items = yield* storage.read(address, Math.max(1, head - count + 1), limit, true)
    if ((items.at(-1)?.n ?? 0) <= head) return { loaded, items }
  }
})

const readRecord = (storage: StorageApi, address: Address): Effect.Effect<Read, StorageFailure> =>
  Effect.map(Effect.suspend(() => storage.load(address)), (loaded) => ({ loaded, items: [] }))

/**
 * Reads an actor. A record or item that its behavior cannot decode is a defect. A record of a later
 * program, with a format above `formatMax`, is a failure: a node that reads it can serve the actor.
 */
export const recover = Effect.fnUntraced(function*(
  storage: StorageApi,
  behavior: AnyBehavior,
  address: Address,
  formatMax: number
): Effect.fn.Return<RecoveredActor, StorageFailure> {
  const { decode, initial, recall } = behavior
  const { items, loaded: { head, revision, state: text, timer } } = yield* Effect.catchDefect(
    recall === undefined
      ? readRecord(storage, address)
      : readBoth(storage, address, recall.items),
    recoveryAborted
  )
  // The registry has lost the state's type; the behavior's own decoder made it.
  let state: Tagged = initial
  if (text !== undefined) {
    const stored = decodeStoredState(text)
    if (stored.format > formatMax) {
      const formats = `format ${stored.format}, and this node reads up to ${formatMax}`
      return yield* Effect.fail(
        new StorageUnavailable({ detail: `${keyOf(address)} is stored in ${formats}` })
      )
    }
    state = decode(stored.text, stored.format, address)
  }
  if (recall === undefined) {
    const bytes = bytesOf(behavior, state, text)
    return { state, bytes, revision, head, timer, recent: undefined }
  }
  const recent = new DeduplicationWindow(recall.items)
  for (const { n, value } of items) {
    const key = recall.keyOf(value)
    if (key !== undefined) recent.add(key, n)
  }
  state = recall.restore(state, items)
  return { state, bytes: bytesOf(behavior, state, text), revision, head, timer, recent }
})
