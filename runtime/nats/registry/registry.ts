/**
 * The registry port on the key-value bucket `cluster`, readable with any NATS tool: `node.<name>`
 * for each node, with its time to live, and `claim.<shard>` for each shard. Reads go to the
 * stream's leader; the watch begins anew whenever it breaks off.
 */
import { jetstream } from "@nats-io/jetstream"
import { type KV, type KvEntry, Kvm, type KvWatchEntry } from "@nats-io/kv"
import type { QueuedIterator } from "@nats-io/transport-node"
import { Effect, Layer, Schedule } from "effect"
import { StorageUnavailable } from "../../actor/index.ts"
import { clusterBucket, createStreamResendMs, createStreamTimeoutMs, registryMarkerTtlMs,
  registryServerSwitchMs, registryTimeoutMs, registryWatchRetryMs, registryWatchSilenceMs,
  retryDelayMs } from "../../limits.ts"
import { Registry, type RegistryApi, type RegistryEntry, RegistryMoved } from "../../ports/index.ts"
import { Nats, type NatsApi } from "../connection/index.ts"
import { isMarker } from "../storage/index.ts"
import { assertStreamConfig, bucketNamed, expectSequence, isFull, readLastFromLeader, write,
  type WriteResult } from "../stream/index.ts"

const { stream } = bucketNamed(clusterBucket)

/** The server's code of a write that met another sequence than it expected. */
const WRONG_LAST_SEQUENCE = 10_071

const hasMoved = (written: WriteResult): boolean =>
  written._tag === "Rejected" && written.code === WRONG_LAST_SEQUENCE

const hasNoRoom = (written: WriteResult): boolean => isFull(written)

const failed = (error: unknown): StorageUnavailable =>
  new StorageUnavailable({
    detail: `the registry: ${error instanceof Error ? error.message : String(error)}`
  })

const attempt = <A>(call: () => Promise<A>): Effect.Effect<A, StorageUnavailable> =>
  Effect.tryPromise({ try: call, catch: failed })

const seconds = (ms: number): string => `${Math.ceil(ms / 1_000)}s`

const entryOf = (entry: KvEntry): RegistryEntry => ({
  key: entry.key,
  value: entry.operation === "PUT" ? entry.string() : undefined,
  revision: entry.revision
})

/** One watch, over all that it is begun anew. */
class Watch {
  /** Resolves when all that is there was told; rejects when that cannot be had. */
  readonly told: Promise<void>
  private readonly kv: KV
  private readonly onChange: (entry: RegistryEntry) => void
  private readonly look: NodeJS.Timeout
  private iterator: QueuedIterator<KvWatchEntry> | undefined = undefined
  private heardMs = performance.now()
  private stopped = false

  constructor(kv: KV, onChange: (entry: RegistryEntry) => void) {
    this.kv = kv
    this.onChange = onChange
    this.look = setInterval(() => this.hearken(), registryWatchSilenceMs / 4)
    this.told = new Promise((resolve, reject) => {
      setTimeout(() => reject(new Error("the watch tells nothing")), registryTimeoutMs).unref()
      void this.run(resolve)
    })
  }

  stop(): void {
    this.stopped = true
    clearInterval(this.look)
    this.iterator?.stop()
  }

  /** A watch may go silent with the connection or its server, and not notice. */
  private hearken(): void {
    if (performance.now() - this.heardMs > registryWatchSilenceMs) this.iterator?.stop()
  }

  private async run(told: () => void): Promise<void> {
    while (!this.stopped) {
      // It breaks off with the connection: what was missed is told by the next.
      await this.once(told).catch(() => undefined)
      if (!this.stopped) await new Promise((resolve) => setTimeout(resolve, registryWatchRetryMs))
    }
  }

  private async once(told: () => void): Promise<void> {
    const { values } = await this.kv.status()
    const iterator = await this.kv.watch()
    this.iterator = iterator
    this.heardMs = performance.now()
    if (this.stopped) iterator.stop()
    // Of an empty bucket nothing is told.
    if (values === 0) told()
    for await (const entry of iterator) {
      this.heardMs = performance.now()
      this.onChange(entryOf(entry))
      if (entry.isUpdate) told()
    }
  }
}

class NatsRegistry implements RegistryApi {
  private readonly nats: NatsApi
  private readonly kv: KV
  private answeredMs = performance.now()
  private turnedMs = 0

  constructor(nats: NatsApi, kv: KV) {
    this.nats = nats
    this.kv = kv
  }

  readonly get: RegistryApi["get"] = (key) =>
    Effect.map(
      attempt(async () => {
        const found = await readLastFromLeader(this.nats, stream, `$KV.${clusterBucket}.${key}`)
          .catch(
            (error: unknown) => {
              this.unanswered()
              throw error
            }
          )
        this.answeredMs = performance.now()
        return found
      }),
      (stored) => {
        if (stored === undefined) return { key, value: undefined, revision: 0 }
        const isGone = isMarker(stored) || stored.header("Nats-Marker-Reason") !== undefined
        return { key, value: isGone ? undefined : stored.text(), revision: stored.seq }
      }
    )

  readonly put: RegistryApi["put"] = (key, value, expected, ttlMs) => {
    const lines = ttlMs === undefined ? "" : `Nats-TTL: ${seconds(ttlMs)}\r\n`
    const once = (last: number) => this.write(key, value, last, lines)
    if (expected !== 0) return once(expected)
    // A key that is not there may have left the mark of its end.
    return Effect.catchTag(once(0), "RegistryMoved", (moved) =>
      Effect.flatMap(
        this.get(key),
        (found) => found.value === undefined ? once(found.revision) : Effect.fail(moved)
      ))
  }

  readonly remove: RegistryApi["remove"] = (key, expected) => {
    // The mark ends too: names that were made up leave nothing.
    const lines = `KV-Operation: DEL\r\nNats-TTL: ${seconds(registryMarkerTtlMs)}\r\n`
    return Effect.asVoid(this.write(key, "", expected, lines))
  }

  readonly watch: RegistryApi["watch"] = (onChange) =>
    Effect.flatMap(
      Effect.acquireRelease(
        Effect.sync(() => new Watch(this.kv, onChange)),
        (watch) => Effect.sync(() => watch.stop())
      ),
      (watch) => attempt(() => watch.told)
    )

  private write(
    key: string,
    data: string,
    last: number,
    lines: string
  ): Effect.Effect<number, RegistryMoved | StorageUnavailable> {
    const message = {
      subject: `$KV.${clusterBucket}.${key}`,
      data,
      headers: expectSequence(last) + lines
    }
    return Effect.flatMap(
      attempt(async () => {
        const outcome = await write(this.nats, [message])
        // Where the leader has no room another way to it leads nowhere.
        const isAnswer = outcome._tag === "Stored" || hasMoved(outcome) || hasNoRoom(outcome)
        if (isAnswer) this.answeredMs = performance.now()
        else this.unanswered()
        return outcome
      }),
      (written): Effect.Effect<number, RegistryMoved | StorageUnavailable> => {
        if (written._tag === "Stored") return Effect.succeed(written.first)
        // Any other refusal may only say that another write is under way.
        return hasMoved(written)
          ? Effect.fail(new RegistryMoved({ key, expected: last }))
          : Effect.fail(failed(written.detail))
      }
    )
  }

  /** Turns to another server when this one has been no way to the registry for long. */
  private unanswered(): void {
    const nowMs = performance.now()
    const sinceMs = Math.max(this.answeredMs, this.turnedMs)
    if (nowMs - sinceMs < registryServerSwitchMs || this.nats.nc.isClosed()) return
    this.turnedMs = nowMs
    void this.nats.nc.reconnect().catch(() => undefined)
  }
}

const openBucket = (nats: NatsApi): Effect.Effect<KV, StorageUnavailable> => {
  const kvm = new Kvm(jetstream(nats.nc, { timeout: createStreamResendMs }))
  const { replicas } = nats
  const make = async (): Promise<KV> => {
    const options = { replicas, history: 1, markerTTL: registryMarkerTtlMs, allow_direct: false }
    const opened = () => kvm.open(clusterBucket, { allow_direct: false })
    const bucket = await opened()
    const { streamInfo } = await bucket.status().catch(() => ({ streamInfo: undefined }))
    if (streamInfo === undefined) return kvm.create(clusterBucket, options)
    assertStreamConfig(stream, { ...streamInfo.config }, {
      allow_msg_ttl: true,
      storage: "file",
      max_age: 0
    })
    return bucket
  }
  // A cluster that has just begun elects its leaders first.
  const tries = Math.ceil(createStreamTimeoutMs / createStreamResendMs)
  return Effect.retry(attempt(make), { times: tries, schedule: Schedule.spaced(retryDelayMs) })
}

/** The registry of the cluster; makes its bucket when it is not there. */
export const natsRegistry: Layer.Layer<Registry, StorageUnavailable, Nats> = Layer.effect(
  Registry,
  Effect.gen(function*() {
    const nats = yield* Nats
    return new NatsRegistry(nats, yield* openBucket(nats))
  })
)
