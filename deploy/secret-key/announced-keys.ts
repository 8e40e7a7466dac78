/**
 * The ids of the keys of stored secrets that a cluster has, in its registry: a node with another
 * key does not join. So no node encrypts what another could not read.
 */
import { Effect, Schedule } from "effect"
import type { Keyring } from "../../actors/index.ts"
import { Registry, type StorageUnavailable } from "../../runtime/index.ts"
import { announcedKeysMax } from "../limits.ts"
import { SecretKeyUnusable } from "./key-file.ts"

const registryKey = "secret-keys"

/** Servers that have just started may not respond yet, and another node may announce meanwhile. */
const retryMs = 500

const retriesMax = 40

/** Why a node with this keyring must not join, and what to do. */
interface KeyDisagreement {
  readonly found: string
  readonly advice: string
}

/** The disagreement of a node with its cluster; undefined if it may join. */
const disagreementOf = (
  { currentId, ids }: Keyring,
  known: ReadonlyArray<string>
): KeyDisagreement | undefined => {
  if (known.length === 0 || known.includes(currentId)) return undefined
  const key = `the key of stored secrets of this node (${currentId})`
  return ids.some((id) => known.includes(id))
    ? {
      found: `${key} is not known to the other nodes, which could not read what it encrypts`,
      advice: "add it to SECRET_KEY_FILE of every node as a further line, restart them, then " +
        "make it the first line"
    }
    : {
      found: `${key} is not that of the cluster (${known.join(", ")})`,
      advice: "set SECRET_KEY_FILE to a copy of the file that the other nodes have"
    }
}

const knownIn = (value: string | undefined): ReadonlyArray<string> => value?.split(" ") ?? []

/** Compares the keys of a node with those that its cluster has announced. It writes nothing. */
export const disagreementWithCluster = (
  keyring: Keyring
): Effect.Effect<KeyDisagreement | undefined, StorageUnavailable, Registry> =>
  Effect.flatMap(
    Registry,
    ({ get }) =>
      Effect.map(get(registryKey), ({ value }) => disagreementOf(keyring, knownIn(value)))
  )

const announceOnce = Effect.fnUntraced(function*(
  { get, put }: Registry["Service"],
  keyring: Keyring
) {
  const { revision, value } = yield* get(registryKey)
  const known = knownIn(value)
  const problem = disagreementOf(keyring, known)
  if (problem !== undefined) {
    return yield* new SecretKeyUnusable({ message: `${problem.found}: ${problem.advice}` })
  }
  const added = keyring.ids.filter((id) => !known.includes(id))
  if (added.length === 0) return
  yield* put(registryKey, [...known, ...added].slice(-announcedKeysMax).join(" "), revision)
})

/** Announces the node's keys to its cluster. Fails if the cluster does not know the current one. */
export const announceKeys = (
  keyring: Keyring
): Effect.Effect<void, SecretKeyUnusable | StorageUnavailable, Registry> =>
  Effect.flatMap(Registry, (registry) => announceOnce(registry, keyring)).pipe(
    Effect.retry({
      times: retriesMax,
      schedule: Schedule.spaced(retryMs),
      while: (failure) => failure._tag !== "SecretKeyUnusable"
    }),
    Effect.catchTag("RegistryMoved", Effect.die)
  )
