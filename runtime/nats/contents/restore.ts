/**
 * Restoring the streams of a cluster from an archive. The key `restoring` in the bucket `cluster`
 * exists from before the first write until after the last. No node serves while it exists, and the
 * next restore empties the streams and starts again. The restoring process renews `restorer`.
 */
import { Effect, Schedule, type Scope } from "effect"
import { StorageCorrupted, StorageUnavailable } from "../../actor/index.ts"
import { blobsBucket, recordsBucket, restorerRenewMs, restorerTtlMs } from "../../limits.ts"
import { logFailure } from "../../logged-failure.ts"
import { Registry } from "../../ports/index.ts"
import { asStorageUnavailable, Nats, type NatsApi,
  retryUntilDeadline } from "../connection/index.ts"
import { type BucketFailure, bucketFailure, callApi, ensureActorBuckets, ensureBucket,
  streamInfo } from "../stream/index.ts"

const restoringKey = "restoring"

const leaseKey = "restorer"

const nodePrefix = "node."

const refusal = (detail: string, advice: string): StorageUnavailable =>
  new StorageUnavailable({ detail, advice })

/** Fails with StorageCorrupted during a restore, and after an interrupted one. */
export const assertWhole: Effect.Effect<void, StorageUnavailable | StorageCorrupted, Registry> =
  Effect.gen(function*() {
    const { value } = yield* (yield* Registry).get(restoringKey)
    if (value === undefined) return
    return yield* new StorageCorrupted({
      detail: "it was restored in part: a restore is under way or was interrupted; restore it again"
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

/** Whether a stream of the store exists and has messages; creates no stream. */
export const hasContents = (nats: NatsApi): Effect.Effect<boolean, StorageUnavailable> =>
  Effect.tryPromise({
    try: async () => {
      const names = ["KV_actors", "KV_actors-0", `KV_${recordsBucket}`]
      for (const name of names) {
        const hasMessages = await nats.jsm.streams.info(name).then(
          ({ state }) => state.messages > 0,
          (error: unknown) => {
            if (error instanceof Error && /not found/.test(error.message)) return false
            throw error
          }
        )
        if (hasMessages) return true
      }
      return false
    },
    catch: asStorageUnavailable
  })

/** Writes the keys by compare-and-set, so only one of two processes continues. */
const claimRestore = Effect.fnUntraced(function*(isEmpty: boolean) {
  const registry = yield* Registry
  const mark = yield* registry.get(restoringKey)
  const lease = yield* registry.get(leaseKey)
  if (lease.value !== undefined) {
    return yield* refusal("another process is restoring it", "wait until it ends")
  }
  if (mark.value === undefined && !isEmpty) {
    return yield* refusal("there is a store already", "restore into empty NATS servers")
  }
  const startedAt = new Date().toISOString()
  const revision = yield* registry.put(restoringKey, startedAt, mark.revision)
  const leaseRevision = yield* registry.put(leaseKey, startedAt, lease.revision, restorerTtlMs)
  return { revision, leaseRevision, isRepeated: mark.value !== undefined }
})

/** Renews the lease until the scope closes, then removes it. */
const renewLease = Effect.fnUntraced(function*(first: number) {
  const registry = yield* Registry
  let revision = first
  const renewal = Effect.map(
    Effect.suspend(() => registry.put(leaseKey, "held", revision, restorerTtlMs)),
    (next) => {
      revision = next
    }
  )
  yield* logFailure(renewal, "the lease of this restore was not renewed; the process retries").pipe(
    Effect.repeat(Schedule.spaced(restorerRenewMs)),
    Effect.forkScoped
  )
  yield* Effect.addFinalizer(() =>
    Effect.ignore(Effect.suspend(() => registry.remove(leaseKey, revision)))
  )
})

/**
 * Begins a restore: writes the key `restoring`, checks that no node runs, and empties the streams
 * of an interrupted restore. The returned effect ends the restore: it removes the key, unless
 * another process has replaced it. Fails with StorageUnavailable if nodes run or a store exists.
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
  const moved = () => Effect.fail(refusal("another process is restoring it", "wait until it ends"))
  const claim = yield* claimRestore(counts.every((count) => count === 0)).pipe(
    Effect.catchTag("RegistryMoved", moved)
  )
  yield* renewLease(claim.leaseRevision)
  const end = registry.remove(restoringKey, claim.revision).pipe(
    Effect.catchTag("RegistryMoved", moved)
  )
  const nodes = yield* nodesOf()
  if (nodes.length > 0) {
    if (!claim.isRepeated) yield* end
    return yield* refusal(`nodes run on it: ${nodes.join(", ")}`, "stop them first")
  }
  if (claim.isRepeated) {
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
