/** The registry of all nodes: calls are slow, lost, or executed without an answer. */
import { Effect } from "effect"
import { SHARDS, StorageUnavailable } from "../../actor/index.ts"
import { claimKey, memberKey, memberText } from "../../cluster/index.ts"
import { makeMemoryRegistry } from "../../memory/index.ts"
import type { RegistryApi, RegistryEntry } from "../../ports/index.ts"
import type { Computer, Trace, VirtualTime } from "../time/index.ts"
import type { ClusterNoise } from "./noise.ts"

/** A node's connection to the registry. */
export interface RegistryLine {
  readonly registry: RegistryApi
  /** Until this time its calls are lost, and its watch reports nothing. */
  cutUntilMs: number
}

/** An idle node that owns all shards without resources. */
const idler = "idler"
const idlerRefreshMs = 20_000
/** Greatest delay before an expired key is reported, ms. */
const expiryLateMaxMs = 300
const wayMaxMs = 8
const slowCallMaxMs = 12_000
const slowWatchMaxMs = 9_000
const cutPollMs = 200

/** Made once, since making an error takes longer than a call. */
const unavailable = Effect.fail(new StorageUnavailable({ detail: "as simulated" }))

export class SharedRegistry {
  noise: ClusterNoise
  stalledUntilMs = 0
  readonly inner: RegistryApi
  private readonly time: VirtualTime
  private readonly trace: Trace

  constructor(time: VirtualTime, trace: Trace, noise: ClusterNoise) {
    this.trace = trace
    this.time = time
    this.noise = noise
    this.inner = makeMemoryRegistry((ms, run) =>
      time.later(ms + time.random() * expiryLateMaxMs, run)
    )
  }

  /**
   * Leaves these shards to the nodes, and assigns all others to an idle node: otherwise the nodes
   * would spend most of their time on shards without resources.
   */
  leaveOnly(shards: ReadonlySet<number>): void {
    const incarnation = idler
    const put = (key: string, value: string) =>
      Effect.runSync(
        Effect.flatMap(this.inner.get(key), ({ revision }) => this.inner.put(key, value, revision))
      )
    const refresh = (): void => {
      put(memberKey(idler), memberText({ incarnation, leaving: true, format: 1, witnesses: [] }))
      this.time.later(idlerRefreshMs, refresh)
    }
    refresh()
    for (let shard = 0; shard < SHARDS; shard++) {
      if (!shards.has(shard)) put(claimKey(shard), JSON.stringify({ node: idler, incarnation }))
    }
    this.traceChanges()
  }

  /** The idle node releases a shard, and another node claims it. */
  release(shard: number): void {
    const key = claimKey(shard)
    const { revision, value = "" } = Effect.runSync(this.inner.get(key))
    if (!value.includes(idler)) return
    Effect.runSync(this.inner.put(key, JSON.stringify({ node: null, after: revision }), revision))
  }

  /** Traces changes from now on, except refreshes, which repeat. */
  private traceChanges(): void {
    const last = new Map<string, string>()
    Effect.runFork(Effect.scoped(Effect.andThen(
      this.inner.watch(({ key, value = "gone" }) => {
        if (last.get(key) === value || value.includes(idler)) return
        last.set(key, value)
        this.trace.note("registry", () => `${key} ${value}`)
      }),
      Effect.never
    )))
  }

  connect(computer: Computer): RegistryLine {
    const { inner, time } = this
    const wayMs = (): number =>
      Math.max(0, this.stalledUntilMs - time.nowMs) + time.random() * wayMaxMs
    const call = <A, E>(effect: Effect.Effect<A, E>): Effect.Effect<A, E | StorageUnavailable> =>
      Effect.callback((resume) => {
        const { registryFaults } = this.noise
        const lot = time.random()
        if (time.nowMs < line.cutUntilMs || lot < registryFaults / 4) return
        const isSlow = lot >= registryFaults / 4 && lot < registryFaults / 2
        const isUnanswered = lot >= registryFaults / 2 && lot < registryFaults * 0.75
        const fails = lot >= registryFaults * 0.75 && lot < registryFaults
        time.later(isSlow ? time.random() * slowCallMaxMs : wayMs(), () => {
          const exit = Effect.runSyncExit(effect)
          if (isUnanswered) return
          time.on(computer, wayMs(), () => resume(fails ? unavailable : exit))
        })
      })
    const line: RegistryLine = {
      cutUntilMs: 0,
      registry: {
        put: (...put) => call(inner.put(...put)),
        remove: (...remove) => call(inner.remove(...remove)),
        get: (key) => call(inner.get(key)),
        watch: (onChange) => this.watch(computer, () => time.nowMs >= line.cutUntilMs, onChange)
      }
    }
    return line
  }

  /** Reports changes late and in their order; a node that is cut off gets them afterwards. */
  private watch(
    computer: Computer,
    reaches: () => boolean,
    onChange: (entry: RegistryEntry) => void
  ): ReturnType<RegistryApi["watch"]> {
    const { time } = this
    let begun = false
    let scheduled = false
    let waiting = new Map<string, RegistryEntry>()
    const deliver = (): void => {
      scheduled = false
      if (!reaches()) return schedule(cutPollMs)
      const entries = waiting
      waiting = new Map()
      for (const entry of entries.values()) onChange(entry)
    }
    const schedule = (ms: number): void => {
      if (scheduled) return
      scheduled = true
      time.on(computer, ms, deliver)
    }
    return Effect.tap(
      this.inner.watch((entry) => {
        if (!begun) return onChange(entry)
        if (!computer.alive) return
        // The watch may report only the latest of several changes of a key.
        waiting.delete(entry.key)
        waiting.set(entry.key, entry)
        const isSlow = time.random() < this.noise.registryFaults
        schedule(time.random() * (isSlow ? slowWatchMaxMs : wayMaxMs * 2))
      }),
      () => Effect.sync(() => void (begun = true))
    )
  }
}
