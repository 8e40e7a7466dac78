/** The service's own secret: generated at the first start, stored, and the same on every node. */
import { Effect, Option, Schedule } from "effect"
import { randomIds } from "../../http/index.ts"
import { type RecordsApi, Registry, type StorageFailure,
  StorageUnavailable } from "../../runtime/index.ts"

const serviceTable = "service"

const keyRecord = "key"

/** Retries of the first read: servers that have just started may not respond yet. */
const retryMs = 500

const retriesMax = 40

/** Key of the registry, by which nodes that start together agree on one secret. */
const registryKey = "service-key"

/**
 * The secret that this node or a faster one registered. A registry accepts a missing key from one
 * node only. Without a registry there is no other node.
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

/** The stored secret. At the first start, all nodes generate and store the same one. */
export const serviceKeyOf = Effect.fnUntraced(function*(
  records: RecordsApi
): Effect.fn.Return<string, StorageFailure> {
  const stored = yield* records.get(serviceTable, keyRecord)
  if (stored !== undefined) return stored
  // A retry reads the secret that an earlier attempt may have registered.
  const value = yield* Effect.retry(agreedKey(randomIds.secret(keyRecord)), {
    times: retriesMax,
    schedule: Schedule.spaced(retryMs)
  })
  yield* records.write([{ table: serviceTable, key: keyRecord, value }])
  return value
})
