/**
 * The service's own secret: generated at the first start, stored encrypted, and the same on every
 * node. A node that cannot decrypt it does not have the key of the stored secrets, and ends.
 */
import { Effect, Option, Schedule } from "effect"
import { type Keyring, type SealedPlace, sealingKeyId } from "../../actors/index.ts"
import { randomIds } from "../../http/index.ts"
import { type RecordsApi, Registry, type StorageFailure,
  StorageUnavailable } from "../../runtime/index.ts"
import { SecretKeyUnusable } from "./key-file.ts"

const serviceTable = "service"

const keyRecord = "key"

/** Retries of the first read: servers that have just started may not respond yet. */
const retryMs = 500

const retriesMax = 40

/** Key of the registry, by which nodes that start together agree on one secret. */
const registryKey = "service-key"

/** The place of the service's own key. */
export const serviceKeyPlace: SealedPlace = {
  purpose: "service key",
  of: `${serviceTable}/${keyRecord}`
}

/** Whether a record is the service's own key. */
export const isServiceKey = (
  { key, table }: { readonly table: string; readonly key: string }
): boolean => table === serviceTable && key === keyRecord

/**
 * The encrypted secret that this node or a faster one registered. A registry accepts a missing key
 * from one node only. Without a registry there is no other node.
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

const opened = (keyring: Keyring, sealed: string): Effect.Effect<string, SecretKeyUnusable> => {
  const text = keyring.open(serviceKeyPlace, sealed)
  return text === undefined
    ? Effect.fail(
      new SecretKeyUnusable({
        message:
          `the store has secrets under the key ${sealingKeyId(sealed) ?? "of another version"}, ` +
          `and this node has ${keyring.ids.join(", ")}: put the store's own key file back, or ` +
          "name it in SECRET_KEY_FILE"
      })
    )
    : Effect.succeed(text)
}

/**
 * The stored secret. At the first start, all nodes generate and store the same one. It is encrypted
 * again when the node has a new current key.
 */
export const serviceKeyOf = Effect.fnUntraced(function*(
  records: RecordsApi,
  keyring: Keyring
): Effect.fn.Return<string, StorageFailure | SecretKeyUnusable> {
  const stored = yield* records.get(serviceTable, keyRecord)
  const proposed = keyring.seal(serviceKeyPlace, randomIds.secret(keyRecord))
  // A retry reads the secret that an earlier attempt may have registered.
  const sealed = stored ?? (yield* Effect.retry(agreedKey(proposed), {
    times: retriesMax,
    schedule: Schedule.spaced(retryMs)
  }))
  const text = yield* opened(keyring, sealed)
  const isCurrent = sealingKeyId(sealed) === keyring.currentId
  if (stored === undefined || !isCurrent) {
    const value = isCurrent ? sealed : keyring.seal(serviceKeyPlace, text)
    yield* records.write([{ table: serviceTable, key: keyRecord, value }])
  }
  return text
})

/** Fails if these are not the keys of the store. One without a secret has not been served yet. */
export const assertKeyOfStore = (
  records: Pick<RecordsApi, "get">,
  keyring: Keyring
): Effect.Effect<void, StorageFailure | SecretKeyUnusable> =>
  Effect.flatMap(
    records.get(serviceTable, keyRecord),
    (stored) => stored === undefined ? Effect.void : Effect.asVoid(opened(keyring, stored))
  )
