/** The storage port on JetStream. */
import { Effect, Layer } from "effect"
import { type Address, keyOf, shardOf, type StorageFailure, StorageUnavailable,
  ValueTooLarge } from "../../actor/index.ts"
import { assertCommit, type Commit, type CommitOutcome, Storage,
  type StorageApi } from "../../ports/index.ts"
import { asStorageUnavailable, Nats, type NatsApi } from "../connection/index.ts"
import { actorBuckets, type Bucket, type BucketFailure, makeIds,
  streamInfo } from "../stream/index.ts"
import { groupItems } from "./actor-entry.ts"
import { readLog } from "./actor-log.ts"
import { ActorScanner } from "./actor-scan.ts"
import { ActorQueues, CommitJob, GroupOutcomes } from "./commit-batcher.ts"
import { BucketWriter } from "./commit-writer.ts"

/** How the actors of a cluster are divided into streams. */
export interface NatsStorageOptions {
  /** Buckets of a new cluster; an existing cluster must have as many. */
  readonly buckets?: number
}

/** Bytes of a text, or about as many if it certainly fits: a UTF-16 unit takes at most three. */
const bytesOf = (text: string, max: number): number =>
  3 * text.length <= max ? text.length : Buffer.byteLength(text)

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
    const writer = this.writers[this.streamOf(shard)]
    if (writer === undefined) throw new RangeError(`no bucket for shard ${shard}`)
    return writer
  }

  readonly engine = "JetStream"

  readonly streamOf: StorageApi["streamOf"] = (shard) => shard % this.writers.length

  readonly commit: StorageApi["commit"] = (group, report, isHeld = () => true) =>
    Effect.callback<ReadonlyArray<CommitOutcome>>((resume) => {
      for (const commit of group) assertCommit(commit)
      const end = (all: ReadonlyArray<CommitOutcome>) => resume(Effect.succeed(all))
      const outcomes = new GroupOutcomes(group.length, report, isHeld, end)
      const bytesMax = this.nats.dataBytesMax()
      group.forEach((commit, at) => this.submit(commit, bytesMax, outcomes, at))
      return Effect.sync(() => {
        outcomes.abandoned = true
      })
    })

  private submit(commit: Commit, bytesMax: number, outcomes: GroupOutcomes, at: number): void {
    const { address, append, state } = commit
    let bytes = bytesOf(state ?? "", bytesMax)
    let largest = bytes
    for (const { value } of append) {
      const size = bytesOf(value, bytesMax)
      bytes += size
      if (size > largest) largest = size
    }
    if (largest > bytesMax) {
      const detail = `${keyOf(address)}: a text of ${largest} bytes; ` +
        `the max_payload of the NATS servers leaves ${bytesMax}`
      const failure = new ValueTooLarge({ detail })
      return outcomes.settle(at, { _tag: "Refused", failure })
    }
    const messages = groupItems(append, bytesMax)
    const job = new CommitJob(commit, messages, this.nextCommitId(), bytes, outcomes, at)
    this.writerOf(shardOf(address)).submit(this.queues.of(address), job)
  }

  readonly load: StorageApi["load"] = (address) =>
    attempt(async () => {
      const writer = this.writerOf(shardOf(address))
      const { head, revision, text, timer } = await writer.load(this.queues.of(address))
      return { state: text, revision, head, timer }
    })

  readonly read: StorageApi["read"] = (address, from, limit, isOwn, charsMax) =>
    attempt(() => {
      if (limit <= 0) return Promise.resolve([])
      const { bucket } = this.writerOf(shardOf(address))
      const known = isOwn === true ? this.fenced(address) : undefined
      return readLog(this.nats, bucket, address, known, { from, limit, charsMax })
    })

  /** The actor, where this node has fenced it; any other node must read it. */
  private fenced(address: Address) {
    const entry = this.queues.peek(address)?.entry
    return entry?.isFenced === true ? entry : undefined
  }

  readonly timers: StorageApi["timers"] = (shard, limit, from, untilMs = Infinity) =>
    attempt((signal) => this.writerOf(shard).timers.next({ shard, limit, from, untilMs, signal }))

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

const attempt = <A>(call: (signal: AbortSignal) => Promise<A>): Effect.Effect<A, StorageFailure> =>
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
