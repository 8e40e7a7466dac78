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
  /** Buckets of a cluster that is made now; one that is there must have as many. */
  readonly buckets?: number
}

/** What became of one commit of a group; a failure means that nothing of it was kept. */
type Settled = CommitOutcome | StorageFailure

const isOutcome = (settled: Settled): settled is CommitOutcome =>
  settled._tag === "Committed" || settled._tag === "Conflict" || settled._tag === "Indeterminate"

/**
 * A group fails only as a whole. A commit that was not kept while others of its group were is a
 * conflict: its actor is loaded again and decides anew.
 */
const together = (
  group: ReadonlyArray<Commit>,
  settled: ReadonlyArray<Settled>
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
  private readonly lanes = new ActorQueues()
  private readonly scanner: ActorScanner
  private readonly nextCommitId = makeIds()

  constructor(nats: NatsApi, places: ReadonlyArray<Bucket>) {
    this.nats = nats
    this.writers = places.map((place) => new BucketWriter(nats, place))
    this.scanner = new ActorScanner(nats, places)
  }

  private writerOf(shard: number): BucketWriter {
    const writer = this.writers[shard % this.writers.length]
    if (writer === undefined) throw new RangeError(`no bucket for shard ${shard}`)
    return writer
  }

  /** Bytes of all messages; undefined when one is larger than the servers take. */
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
      Effect.callback<ReadonlyArray<Settled>>((resume) => {
        const settled: Array<Settled> = []
        const jobs: Array<CommitJob> = []
        let left = group.length
        if (left === 0) resume(Effect.succeed([]))
        group.forEach((commit, at) => {
          const settle = (one: Settled): void => {
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
      (settled) => together(group, settled)
    )

  private submit(
    commit: Commit,
    settle: (settled: Settled) => void,
    broken: (defect: unknown) => void
  ): CommitJob | undefined {
    const { address, remove, state } = commit
    if (remove.length > 0 && state === undefined) {
      broken(new TypeError(`${keyOf(address)}: removing items demands the state`))
      return undefined
    }
    const max = (this.nats.nc.info?.max_payload ?? Infinity) - headerReserveBytes
    const bytes = this.bytesOf(commit, max)
    if (bytes === undefined) {
      const detail = `${keyOf(address)}: a text is larger than the servers' max_payload`
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
      tries: 0,
      abandoned: false
    }
    this.writerOf(shardOf(address)).submit(this.lanes.of(address), job)
    return job
  }

  readonly load: StorageApi["load"] = (address) =>
    asked(async () => {
      const writer = this.writerOf(shardOf(address))
      const { head, revision, text } = await writer.load(this.lanes.of(address))
      return { state: text, revision, head }
    })

  readonly read: StorageApi["read"] = (address, from, limit, isOwn) =>
    asked(() => {
      if (limit <= 0) return Promise.resolve([])
      const { place } = this.writerOf(shardOf(address))
      // Who owned it before may think that it still knows it.
      const known = isOwn === true ? this.known(address) : undefined
      return readLog(this.nats, place, address, known, from, limit)
    })

  /** Only who has claimed an actor knows it without asking. */
  private known(address: Address) {
    const entry = this.lanes.peek(address)?.entry
    return entry?.isFenced === true ? entry : undefined
  }

  readonly timers: StorageApi["timers"] = (shard, limit) =>
    asked(() => nextTimers(this.nats, this.writerOf(shard).place, shard, limit))

  readonly scan: StorageApi["scan"] = (kind, after, limit) =>
    asked(() => this.scanner.scan(kind, after, limit))

  /** A stream takes commits as long as it has a leader, and that a majority. */
  readonly health: StorageApi["health"] = asked(async () => {
    await Promise.all(this.writers.map(async ({ place: { stream } }) => {
      const { cluster } = await streamInfo(this.nats, stream)
      const others = cluster?.replicas ?? []
      const there = 1 + others.filter(({ current, offline }) => current && offline !== true).length
      if (2 * there <= others.length + 1 || cluster?.leader === "") {
        throw new StorageUnavailable({ detail: `${stream} has no majority of its copies` })
      }
    }))
  })
}

const asked = <A>(ask: () => Promise<A>): Effect.Effect<A, StorageFailure> =>
  Effect.tryPromise({ try: ask, catch: asStorageUnavailable })

/** The storage port; makes its streams when they are not there. */
export const natsStorage = (
  options: NatsStorageOptions = {}
): Layer.Layer<Storage, BucketFailure, Nats> =>
  Layer.effect(
    Storage,
    Effect.gen(function*() {
      const nats = yield* Nats
      const places = yield* actorBuckets(nats, options.buckets)
      return new NatsStorage(nats, places)
    })
  )
