/** What an activation starts from: the record and the end of the log, as the store has them. */
import { Effect } from "effect"
import type { AnyBehaviour, Tagged } from "./actor.ts"
import type { Address } from "./address.ts"
import { type StorageFailure, StorageUnavailable } from "./errors.ts"
import type { LogItem, StorageApi } from "./ports/storage.ts"
import { Recent } from "./recent.ts"

export interface Recovered {
  readonly state: Tagged
  readonly revision: number
  readonly head: number
  readonly recent: Recent | undefined
}

const noItems: Effect.Effect<ReadonlyArray<LogItem>> = Effect.succeed([])

/** A defect of the store is not one of the actor. */
const brokeOff = (): Effect.Effect<never, StorageUnavailable> =>
  Effect.fail(new StorageUnavailable({ detail: "the store broke off" }))

/** Reads an actor; a record or item that its behaviour cannot decode is a defect. */
export const recover = Effect.fnUntraced(function*(
  storage: StorageApi,
  behaviour: AnyBehaviour,
  address: Address
): Effect.fn.Return<Recovered, StorageFailure> {
  const { head, revision, state: text } = yield* Effect.catchDefect(
    Effect.suspend(() => storage.load(address)),
    brokeOff
  )
  const { decode, initial, recall } = behaviour
  // The registry has lost the state's type; the behaviour's own decoder made it.
  const state: Tagged = text === undefined ? initial : decode(text)
  if (recall === undefined) return { state, revision, head, recent: undefined }
  const items = head === 0
    ? yield* noItems
    : yield* Effect.catchDefect(
      Effect.suspend(() =>
        storage.read(address, Math.max(1, head - recall.items + 1), recall.items, true)
      ),
      brokeOff
    )
  const recent = new Recent(recall.items)
  for (const { n, value } of items) {
    const key = recall.keyOf(value)
    if (key !== undefined) recent.add(key, n)
  }
  return { state: recall.restore(state, items), revision, head, recent }
})
