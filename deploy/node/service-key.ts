/** The service's own secret: made at the first start, kept in the store, the same on every node. */
import { Effect, Option, Schedule } from "effect"
import { randomIds } from "../../http/index.ts"
import { type RecordsApi, Registry, type StorageFailure,
  StorageUnavailable } from "../../runtime/index.ts"

const serviceTable = "service"

const keyRecord = "key"

/** Servers that have just begun may not answer at first: how often they are asked again. */
const againMs = 500

const againMax = 40

/** Key of the registry, by which nodes that start together agree on one secret. */
const registryKey = "service-key"

/**
 * The secret that this node, or one that was quicker, has put forward. A registry takes a key that
 * is not there from one node only; without one there is no other node.
 */
const agreedKey = Effect.fnUntraced(function*(
  proposed: string
): Effect.fn.Return<string, StorageFailure> {
  const registry = yield* Effect.serviceOption(Registry)
  if (Option.isNone(registry)) return proposed
  const { get, put } = registry.value
  const before = yield* get(registryKey)
  if (before.value !== undefined) return before.value
  return yield* put(registryKey, proposed, before.revision).pipe(
    Effect.as(proposed),
    Effect.catchTag(
      "RegistryMoved",
      () =>
        Effect.flatMap(get(registryKey), ({ value }) =>
          value === undefined
            ? Effect.fail(new StorageUnavailable({ detail: `no ${registryKey} in the registry` }))
            : Effect.succeed(value))
    )
  )
})

/** The secret as it is kept; made when there is none, by all nodes the same. */
export const serviceKeyOf = Effect.fnUntraced(function*(
  records: RecordsApi
): Effect.fn.Return<string, StorageFailure> {
  const kept = yield* records.get(serviceTable, keyRecord)
  if (kept !== undefined) return kept
  // Whatever became of an attempt before, the next one finds what the registry has.
  const value = yield* Effect.retry(agreedKey(randomIds.secret(keyRecord)), {
    times: againMax,
    schedule: Schedule.spaced(againMs)
  })
  yield* records.write([{ table: serviceTable, key: keyRecord, value }])
  return value
})
