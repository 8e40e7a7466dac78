/**
 * Restoring the streams of a cluster from an archive. The key `restoring` in the bucket `cluster`
 * exists from before the first write until after the last. No node serves while it exists, and the
 * next restore empties the streams and starts again. The restoring process renews `restorer`.
 */
import { Effect, Schedule, type Scope } from "effect"
import { StorageCorrupted, StorageUnavailable } from "../../actor/index.ts"
import { blobsBucket, recordsBucket, restorerRenewMs, restorerTtlMs } from "../../limits.ts"
import { Registry } from "../../ports/index.ts"
import { asStorageUnavailable, Nats, type NatsApi,
  retryUntilDeadline } from "../connection/index.ts"
import { type BucketFailure, bucketFailure, callApi, ensureActorBuckets, ensureBucket,
  streamInfo } from "../stream/index.ts"

const restoringKey = "restoring"

const leaseKey = "restorer"

const nodePrefix = "node."

const refusal = (detail: string): StorageUnavailable => new StorageUnavailable({ detail })

/** Fails with StorageCorrupted while the cluster is restored, and after that was interrupted. */
export const assertWhole: Effect.Effect<void, StorageUnavailable | StorageCorrupted, Registry> =
  Effect.gen(function*() {
    const { value } = yield* (yield* Registry).get(restoringKey)
    if (value === undefined) return
    return yield* new StorageCorrupted({
      detail:
        "it was restored in part: restoring it is under way or was broken off; restore it again"
    })
  })

/** Names of the running nodes. */
const nodesOf = Effect.fnUntraced(function*() {
  const found = new Map<string, string | undefined>()
  const registry = yield* Registry
  yield* Effect.scoped(registry.watch(({ key, value }) => found.set(key, value)))
  return [...found].flatMap(([key, value]) =>
    key.startsWith(nodePrefix) && value !== undefined ? [key.slice(nodePrefix.length)] : []
  )
})

const streamsOf = async (nats: NatsApi, buckets: number | undefined) => {
  const actors = await ensureActorBuckets(nats, buckets)
  const others = await Promise.all(
    [recordsBucket, blobsBucket].map((bucket) => ensureBucket(nats, bucket))
  )
  return [...actors, ...others].map(({ stream }) => stream)
}

const messagesIn = async (nats: NatsApi, stream: string): Promise<number> => {
  const { state } = await retryUntilDeadline(() => streamInfo(nats, stream))
  return state.messages
}

/** Whether the streams exist and have messages; makes none. */
export const hasContents = (nats: NatsApi): Effect.Effect<boolean, StorageUnavailable> =>
  Effect.tryPromise({
    try: async () => {
      const names = ["KV_actors", "KV_actors-0", `KV_${recordsBucket}`]
      for (const name of names) {
        const there = await nats.jsm.streams.info(name).then(
          ({ state }) => state.messages > 0,
          (error: unknown) => {
            if (error instanceof Error && /not found/.test(error.message)) return false
            throw error
          }
        )
        if (there) return true
      }
      return false
    },
    catch: asStorageUnavailable
  })

/** Writes the key by compare-and-set, so one of two processes continues. */
const claimRestore = Effect.fnUntraced(function*(isEmpty: boolean) {
  const registry = yield* Registry
  const mark = yield* registry.get(restoringKey)
  const lease = yield* registry.get(leaseKey)
  if (lease.value !== undefined) return yield* refusal("it is being restored by another process")
  if (mark.value === undefined && !isEmpty) {
    return yield* refusal("there is a store already: only a new one is filled")
  }
  const taken = new Date().toISOString()
  const revision = yield* registry.put(restoringKey, taken, mark.revision)
  const leased = yield* registry.put(leaseKey, taken, lease.revision, restorerTtlMs)
  return { revision, leased, isRepeated: mark.value !== undefined }
})

/** Renews the lease until the scope closes, then gives it up. */
const keepLease = Effect.fnUntraced(function*(first: number) {
  const registry = yield* Registry
  let revision = first
  yield* Effect.suspend(() => registry.put(leaseKey, "held", revision, restorerTtlMs)).pipe(
    Effect.map((next) => {
      revision = next
    }),
    Effect.ignore,
    Effect.repeat(Schedule.spaced(restorerRenewMs)),
    Effect.forkScoped
  )
  yield* Effect.addFinalizer(() =>
    Effect.ignore(Effect.suspend(() => registry.remove(leaseKey, revision)))
  )
})

/**
 * Prepares the streams: empty, marked as restoring, and without nodes. The resulting effect ends
 * the restore: it removes the key, unless another process has replaced it. Fails with
 * StorageUnavailable when nodes run, or when there is a store other than an interrupted restore.
 */
export const beginRestore = Effect.fnUntraced(function*(
  buckets: number | undefined
): Effect.fn.Return<
  Effect.Effect<void, StorageUnavailable>,
  BucketFailure,
  Nats | Registry | Scope.Scope
> {
  const nats = yield* Nats
  const registry = yield* Registry
  const attempt = <A>(call: () => Promise<A>) =>
    Effect.tryPromise({ try: call, catch: bucketFailure })
  const streams = yield* attempt(() => streamsOf(nats, buckets))
  const counts = yield* attempt(() =>
    Promise.all(streams.map((stream) => messagesIn(nats, stream)))
  )
  const moved = () => Effect.fail(refusal("it is being restored by another process"))
  const taken = yield* claimRestore(counts.every((count) => count === 0)).pipe(
    Effect.catchTag("RegistryMoved", moved)
  )
  yield* keepLease(taken.leased)
  const end = registry.remove(restoringKey, taken.revision).pipe(
    Effect.catchTag("RegistryMoved", moved)
  )
  const nodes = yield* nodesOf()
  if (nodes.length > 0) {
    if (!taken.isRepeated) yield* end
    return yield* refusal(`nodes run on it: ${nodes.join(", ")}; stop them first`)
  }
  if (taken.isRepeated) {
    yield* attempt(() =>
      Promise.all(
        streams.map((stream) =>
          retryUntilDeadline(() => callApi(nats, `STREAM.PURGE.${stream}`, {}))
        )
      )
    )
  }
  return end
})
