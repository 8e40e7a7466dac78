/**
 * The registry port on the key-value bucket `cluster`, readable with any NATS tool: `node.<name>`
 * for each node, with a time to live, and `claim.<shard>` for each shard. Reads go to the stream's
 * leader. A watch that ends is restarted.
 */
import { jetstream } from "@nats-io/jetstream"
import { type KV, type KvEntry, Kvm, type KvWatchEntry } from "@nats-io/kv"
import type { QueuedIterator } from "@nats-io/transport-node"
import { Effect, Layer } from "effect"
import { StorageUnavailable } from "../../actor/index.ts"
import { clusterBucket, createStreamResendMs, createStreamTimeoutMs, registryMarkerTtlMs,
  registryServerSwitchMs, registryTimeoutMs, registryWatchRetryMs,
  registryWatchSilenceMs } from "../../limits.ts"
import { Registry, type RegistryApi, type RegistryEntry, RegistryMoved } from "../../ports/index.ts"
import { asStorageUnavailable, Nats, type NatsApi, retryUntilDeadline,
  wait } from "../connection/index.ts"
import { assertStreamConfig, bucketNamed, expectSequence, isFull, isMarker, readLastFromLeader,
  write, type WriteResult, wrongSequenceCode } from "../stream/index.ts"

const { stream } = bucketNamed(clusterBucket)

const isConflict = (written: WriteResult): boolean =>
  written._tag === "Rejected" && written.code === wrongSequenceCode

const failed = (error: unknown): StorageUnavailable =>
  new StorageUnavailable({ detail: `the registry failed: ${asStorageUnavailable(error).detail}` })

const attempt = <A>(call: () => Promise<A>): Effect.Effect<A, StorageUnavailable> =>
  Effect.tryPromise({ try: call, catch: failed })

const seconds = (ms: number): string => `${Math.ceil(ms / 1_000)}s`

const entryOf = (entry: KvEntry): RegistryEntry => ({
  key: entry.key,
  value: entry.operation === "PUT" ? entry.string() : undefined,
  revision: entry.revision
})

/** One watch, over all restarts of the subscription. */
class Watch {
  /** Resolves when all existing entries were delivered; rejects after `registryTimeoutMs`. */
  readonly initialized: Promise<void>
  private readonly kv: KV
  private readonly onChange: (entry: RegistryEntry) => void
  private readonly silenceTimer: NodeJS.Timeout
  private iterator: QueuedIterator<KvWatchEntry> | undefined = undefined
  private lastEntryMs = performance.now()
  private stopped = false

  constructor(kv: KV, onChange: (entry: RegistryEntry) => void) {
    this.kv = kv
    this.onChange = onChange
    this.silenceTimer = setInterval(() => this.restartAfterSilence(), registryWatchSilenceMs / 4)
    this.initialized = new Promise((resolve, reject) => {
      const onTimeout = () => reject(new Error("the watch delivers nothing"))
      setTimeout(onTimeout, registryTimeoutMs).unref()
      void this.run(resolve)
    })
  }

  stop(): void {
    this.stopped = true
    clearInterval(this.silenceTimer)
    this.iterator?.stop()
  }

  /** A watch may go silent with its connection or server, without an error. */
  private restartAfterSilence(): void {
    if (performance.now() - this.lastEntryMs > registryWatchSilenceMs) this.iterator?.stop()
  }

  private async run(initialized: () => void): Promise<void> {
    while (!this.stopped) {
      // The watch ends with its connection; the next one delivers the missed changes.
      await this.watchOnce(initialized).catch(() => undefined)
      if (!this.stopped) await wait(registryWatchRetryMs)
    }
  }

  private async watchOnce(initialized: () => void): Promise<void> {
    const { values } = await this.kv.status()
    const iterator = await this.kv.watch()
    this.iterator = iterator
    this.lastEntryMs = performance.now()
    if (this.stopped) iterator.stop()
    // A watch of an empty bucket delivers nothing.
    if (values === 0) initialized()
    for await (const entry of iterator) {
      this.lastEntryMs = performance.now()
      this.onChange(entryOf(entry))
      if (entry.isUpdate) initialized()
    }
  }
}

class NatsRegistry implements RegistryApi {
  private readonly nats: NatsApi
  private readonly kv: KV
  private lastAnswerMs = performance.now()
  private serverSwitchedMs = 0

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
              this.switchServerAfterSilence()
              throw error
            }
          )
        this.lastAnswerMs = performance.now()
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
    // An expired or removed key leaves a marker with a revision.
    return Effect.catchTag(once(0), "RegistryMoved", (moved) =>
      Effect.flatMap(
        this.get(key),
        (found) => found.value === undefined ? once(found.revision) : Effect.fail(moved)
      ))
  }

  readonly remove: RegistryApi["remove"] = (key, expected) => {
    // The marker expires too, so removed names use no space for ever.
    const lines = `KV-Operation: DEL\r\nNats-TTL: ${seconds(registryMarkerTtlMs)}\r\n`
    return Effect.asVoid(this.write(key, "", expected, lines))
  }

  readonly watch: RegistryApi["watch"] = (onChange) =>
    Effect.flatMap(
      Effect.acquireRelease(
        Effect.sync(() => new Watch(this.kv, onChange)),
        (watch) => Effect.sync(() => watch.stop())
      ),
      (watch) => attempt(() => watch.initialized)
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
        // A full leader is full through any server, so this counts as an answer.
        const isAnswer = outcome._tag === "Stored" || isConflict(outcome) || isFull(outcome)
        if (isAnswer) this.lastAnswerMs = performance.now()
        else this.switchServerAfterSilence()
        return outcome
      }),
      (written): Effect.Effect<number, RegistryMoved | StorageUnavailable> => {
        if (written._tag === "Stored") return Effect.succeed(written.first)
        // Any other rejection may only mean that another write is under way.
        return isConflict(written)
          ? Effect.fail(new RegistryMoved({ key, expected: last }))
          : Effect.fail(failed(written.detail))
      }
    )
  }

  /** Connects to another server when the registry has not answered through this one. */
  private switchServerAfterSilence(): void {
    const nowMs = performance.now()
    const sinceMs = Math.max(this.lastAnswerMs, this.serverSwitchedMs)
    if (nowMs - sinceMs < registryServerSwitchMs || this.nats.nc.isClosed()) return
    this.serverSwitchedMs = nowMs
    void this.nats.nc.reconnect().catch(() => undefined)
  }
}

const openBucket = (nats: NatsApi): Effect.Effect<KV, StorageUnavailable> => {
  const kvm = new Kvm(jetstream(nats.nc, { timeout: createStreamResendMs }))
  const { replicas } = nats
  const open = async () => {
    const options = { replicas, history: 1, markerTTL: registryMarkerTtlMs, allow_direct: false }
    const bucket = await kvm.open(clusterBucket, { allow_direct: false })
    const { streamInfo } = await bucket.status().catch(() => ({ streamInfo: undefined }))
    if (streamInfo !== undefined) return { bucket, config: streamInfo.config }
    return { bucket: await kvm.create(clusterBucket, options), config: undefined }
  }
  return attempt(async () => {
    // A new cluster elects its leaders first, and refuses at once until enough servers have joined.
    const { bucket, config } = await retryUntilDeadline(open, createStreamTimeoutMs)
    if (config !== undefined) {
      const required = { allow_msg_ttl: true, storage: "file", max_age: 0 }
      assertStreamConfig(stream, { ...config }, required)
    }
    return bucket
  })
}

/** The registry of the cluster; creates its bucket if it does not exist. */
export const natsRegistry: Layer.Layer<Registry, StorageUnavailable, Nats> = Layer.effect(
  Registry,
  Effect.gen(function*() {
    const nats = yield* Nats
    return new NatsRegistry(nats, yield* openBucket(nats))
  })
)
