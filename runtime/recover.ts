/** What an activation starts from: the record and the end of the log, as the store has them. */
import { Effect } from "effect"
import type { AnyBehavior, Tagged } from "./actor.ts"
import type { Address } from "./address.ts"
import { type StorageFailure, StorageUnavailable } from "./errors.ts"
import type { LogItem, StorageApi, StoredActor } from "./ports/storage.ts"
import { DeduplicationWindow } from "./recent.ts"

export interface Recovered {
  readonly state: Tagged
  readonly revision: number
  readonly head: number
  readonly recent: DeduplicationWindow | undefined
}

/** A defect of the store is not one of the actor. */
const recoveryAborted = (): Effect.Effect<never, StorageUnavailable> =>
  Effect.fail(new StorageUnavailable({ detail: "the store broke off" }))

interface Read {
  readonly loaded: StoredActor
  readonly items: ReadonlyArray<LogItem>
}

/**
 * The record and the last items, as they were at one moment. Between the two reads a commit may be
 * kept that was given up before: then the log goes further than the record was said to go.
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
    const items = yield* storage.read(address, Math.max(1, head - count + 1), count, true)
    if ((items.at(-1)?.n ?? 0) <= head) return { loaded, items }
  }
})

const readRecord = (storage: StorageApi, address: Address): Effect.Effect<Read, StorageFailure> =>
  Effect.map(Effect.suspend(() => storage.load(address)), (loaded) => ({ loaded, items: [] }))

/** Reads an actor; a record or item that its behaviour cannot decode is a defect. */
export const recover = Effect.fnUntraced(function*(
  storage: StorageApi,
  behaviour: AnyBehavior,
  address: Address
): Effect.fn.Return<Recovered, StorageFailure> {
  const { decode, initial, recall } = behaviour
  const { items, loaded: { head, revision, state: text } } = yield* Effect.catchDefect(
    recall === undefined
      ? readRecord(storage, address)
      : readBoth(storage, address, recall.items),
    recoveryAborted
  )
  // The registry has lost the state's type; the behaviour's own decoder made it.
  const state: Tagged = text === undefined ? initial : decode(text)
  if (recall === undefined) return { state, revision, head, recent: undefined }
  const recent = new DeduplicationWindow(recall.items)
  for (const { n, value } of items) {
    const key = recall.keyOf(value)
    if (key !== undefined) recent.add(key, n)
  }
  return { state: recall.restore(state, items), revision, head, recent }
})
