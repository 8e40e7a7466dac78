/** The storage port on JetStream. */
import { Effect, Layer } from "effect"
import { type Address, keyOf, RevisionConflict, shardOf, type StorageFailure,
  StorageUnavailable } from "../../actor/index.ts"
import { headerReserveBytes } from "../../limits.ts"
import { type Commit, type CommitOutcome, Storage, type StorageApi } from "../../ports/index.ts"
import { asStorageUnavailable, Nats, type NatsApi } from "../connection/index.ts"
import { actorBuckets, type Bucket, type BucketFailure, makeIds,
  streamInfo } from "../stream/index.ts"
import { groupItems } from "./actor-entry.ts"
import { readLog } from "./actor-log.ts"
import { ActorScanner } from "./actor-scan.ts"
import { ActorQueues, type CommitJob } from "./commit-batcher.ts"
import { BucketWriter } from "./commit-writer.ts"
import { nextTimers } from "./stored-timers.ts"

export interface NatsStorageOptions {
  /** Buckets of a new cluster; an existing cluster must have as many. */
  readonly buckets?: number
}

/** The result of one commit of a group; after a failure nothing of it was stored. */
type CommitResult = CommitOutcome | StorageFailure

const isOutcome = (settled: CommitResult): settled is CommitOutcome =>
  settled._tag === "Committed" || settled._tag === "Conflict" || settled._tag === "Indeterminate"

/**
 * A group fails only as a whole. A commit that failed while others of its group were stored becomes
 * a conflict: its actor is loaded again and decides again.
 */
const outcomesOf = (
  group: ReadonlyArray<Commit>,
  settled: ReadonlyArray<CommitResult>
): Effect.Effect<ReadonlyArray<CommitOutcome>, StorageFailure> => {
  const failure = settled.find((one) => !isOutcome(one))
  const isKept = settled.some(({ _tag }) => _tag === "Committed" || _tag === "Indeterminate")
  if (failure !== undefined && !isOutcome(failure) && !isKept) return Effect.fail(failure)
  return Effect.succeed(settled.map((one, at): CommitOutcome => {
    if (isOutcome(one)) return one
    const commit = group[at]
    const { expected = 0 } = commit ?? {}
    const key = commit === undefined ? "" : keyOf(commit.address)
    const conflict = new RevisionConflict({ key, expected, actual: expected })
    return { _tag: "Conflict", conflict }
  }))
}

class NatsStorage {
  private readonly nats: NatsApi
  private readonly writers: ReadonlyArray<BucketWriter>
  private readonly queues = new ActorQueues()
  private readonly scanner: ActorScanner
  private readonly nextCommitId = makeIds()

  constructor(nats: NatsApi, buckets: ReadonlyArray<Bucket>) {
    this.nats = nats
    this.writers = buckets.map((bucket) => new BucketWriter(nats, bucket))
    this.scanner = new ActorScanner(nats, buckets)
  }

  private writerOf(shard: number): BucketWriter {
    const writer = this.writers[shard % this.writers.length]
    if (writer === undefined) throw new RangeError(`no bucket for shard ${shard}`)
    return writer
  }

  /** Bytes of all texts; undefined when one is larger than the servers take. */
  private bytesOf({ append, state }: Commit, max: number): number | undefined {
    let all = 0
    for (const text of [state ?? "", ...append.map(({ value }) => value)]) {
      // A UTF-16 unit takes at most three bytes of UTF-8.
      const bytes = 3 * text.length <= max ? text.length : Buffer.byteLength(text)
      if (bytes > max) return undefined
      all += bytes
    }
    return all
  }

  readonly engine = "JetStream"

  readonly commit: StorageApi["commit"] = (group) =>
    Effect.flatMap(
      Effect.callback<ReadonlyArray<CommitResult>>((resume) => {
        const settled: Array<CommitResult> = []
        const jobs: Array<CommitJob> = []
        let left = group.length
        if (left === 0) resume(Effect.succeed([]))
        group.forEach((commit, at) => {
          const settle = (one: CommitResult): void => {
            settled[at] = one
            if (--left === 0) resume(Effect.succeed(settled))
          }
          const job = this.submit(commit, settle, (defect) => resume(Effect.die(defect)))
          if (job !== undefined) jobs.push(job)
        })
        return Effect.sync(() => {
          for (const job of jobs) job.abandoned = true
        })
      }),
      (settled) => outcomesOf(group, settled)
    )

  private submit(
    commit: Commit,
    settle: (settled: CommitResult) => void,
    broken: (defect: unknown) => void
  ): CommitJob | undefined {
    const { address, remove, state } = commit
    if (remove.length > 0 && state === undefined) {
      broken(new TypeError(`${keyOf(address)}: a commit that removes items needs a state`))
      return undefined
    }
    const max = (this.nats.nc.info?.max_payload ?? Infinity) - headerReserveBytes
    const bytes = this.bytesOf(commit, max)
    if (bytes === undefined) {
      const detail = `${keyOf(address)}: a text is larger than the max_payload of the NATS servers`
      settle(new StorageUnavailable({ detail }))
      return undefined
    }
    const job: CommitJob = {
      commit,
      id: this.nextCommitId(),
      sinceMs: performance.now(),
      bytes,
      logMessages: groupItems(commit.append, max),
      done: settle,
      failed: settle,
      broken,
      isReloaded: false,
      mayBeStored: false,
      failures: 0,
      abandoned: false
    }
    this.writerOf(shardOf(address)).submit(this.queues.of(address), job)
    return job
  }

  readonly load: StorageApi["load"] = (address) =>
    attempt(async () => {
      const writer = this.writerOf(shardOf(address))
      const { head, revision, text } = await writer.load(this.queues.of(address))
      return { state: text, revision, head }
    })

  readonly read: StorageApi["read"] = (address, from, limit, isOwn) =>
    attempt(() => {
      if (limit <= 0) return Promise.resolve([])
      const { bucket } = this.writerOf(shardOf(address))
      const known = isOwn === true ? this.fenced(address) : undefined
      return readLog(this.nats, bucket, address, known, from, limit)
    })

  /** The actor, where this node has fenced it; any other node must read it. */
  private fenced(address: Address) {
    const entry = this.queues.peek(address)?.entry
    return entry?.isFenced === true ? entry : undefined
  }

  readonly timers: StorageApi["timers"] = (shard, limit) =>
    attempt(() => nextTimers(this.nats, this.writerOf(shard).bucket, shard, limit))

  readonly scan: StorageApi["scan"] = (kind, after, limit) =>
    attempt(() => this.scanner.scan(kind, after, limit))

  /** A stream takes commits while it has a leader, and the leader a majority. */
  readonly health: StorageApi["health"] = attempt(async () => {
    await Promise.all(this.writers.map(async ({ bucket: { stream } }) => {
      const { cluster } = await streamInfo(this.nats, stream)
      const others = cluster?.replicas ?? []
      const there = 1 + others.filter(({ current, offline }) => current && offline !== true).length
      if (2 * there <= others.length + 1 || cluster?.leader === "") {
        throw new StorageUnavailable({
          detail: `the stream ${stream} has no majority of its replicas`
        })
      }
    }))
  })
}

const attempt = <A>(call: () => Promise<A>): Effect.Effect<A, StorageFailure> =>
  Effect.tryPromise({ try: call, catch: asStorageUnavailable })

/** The storage port; makes its streams where they do not exist. */
export const natsStorage = (
  options: NatsStorageOptions = {}
): Layer.Layer<Storage, BucketFailure, Nats> =>
  Layer.effect(
    Storage,
    Effect.gen(function*() {
      const nats = yield* Nats
      const buckets = yield* actorBuckets(nats, options.buckets)
      return new NatsStorage(nats, buckets)
    })
  )
