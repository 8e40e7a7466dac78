/** One registry that all nodes share: calls are slow, lost, or done without an answer. */
import { Effect } from "effect"
import { SHARDS } from "../../runtime/actor/address.ts"
import { StorageUnavailable } from "../../runtime/actor/errors.ts"
import { claimKey } from "../../runtime/cluster/claims.ts"
import { memberKey, memberText } from "../../runtime/cluster/membership.ts"
import { makeMemoryRegistry } from "../../runtime/memory/registry.ts"
import type { RegistryApi, RegistryEntry } from "../../runtime/ports/registry.ts"
import type { Noise } from "./plan.ts"
import type { Computer, VirtualTime } from "./time.ts"
import type { Trace } from "./trace.ts"

/** A node's connection to the registry. */
export interface RegistryLine {
  readonly registry: RegistryApi
  /** Its calls are lost, and it is told nothing, before. */
  cutUntilMs: number
}

/** A node that has all shards without resources, and never does anything. */
const IDLER = "idler"
const IDLER_MS = 20_000
/** A key is told to have expired so late at most, ms. */
const EXPIRES_LATE_MS = 300
const WAY_MS = 8
const SLOW_MS = 12_000
const WATCH_SLOW_MS = 9_000
const CUT_LOOK_MS = 200

export class SharedRegistry {
  noise: Noise
  stalledUntilMs = 0
  readonly inner: RegistryApi
  private readonly time: VirtualTime
  private readonly trace: Trace

  constructor(time: VirtualTime, trace: Trace, noise: Noise) {
    this.trace = trace
    this.time = time
    this.noise = noise
    this.inner = makeMemoryRegistry((ms, run) =>
      time.later(ms + time.random() * EXPIRES_LATE_MS, run)
    )
  }

  /**
   * Leaves these shards to the nodes, and all others to one that does nothing: what they would do
   * with shards that hold nothing is most of what they would do at all.
   */
  leaveOnly(shards: ReadonlySet<number>): void {
    const incarnation = IDLER
    const put = (key: string, value: string) =>
      Effect.runSync(
        Effect.flatMap(this.inner.get(key), ({ revision }) => this.inner.put(key, value, revision))
      )
    const refresh = (): void => {
      put(memberKey(IDLER), memberText({ incarnation, leaving: true }))
      this.time.later(IDLER_MS, refresh)
    }
    refresh()
    for (let shard = 0; shard < SHARDS; shard++) {
      if (!shards.has(shard)) put(claimKey(shard), JSON.stringify({ node: IDLER, incarnation }))
    }
    this.tellChanges()
  }

  /** Notes what changes from now on; who is still there says so again and again. */
  private tellChanges(): void {
    const known = new Map<string, string>()
    Effect.runFork(Effect.scoped(Effect.andThen(
      this.inner.watch(({ key, value = "gone" }) => {
        if (known.get(key) === value || value.includes(IDLER)) return
        known.set(key, value)
        this.trace.note("registry", () => `${key} ${value}`)
      }),
      Effect.never
    )))
  }

  connect(computer: Computer): RegistryLine {
    const { inner, time } = this
    const wayMs = (): number =>
      Math.max(0, this.stalledUntilMs - time.nowMs) + time.random() * WAY_MS
    const call = <A, E>(effect: Effect.Effect<A, E>): Effect.Effect<A, E | StorageUnavailable> =>
      Effect.callback((resume) => {
        const { registryFaults } = this.noise
        const lot = time.random()
        if (time.nowMs < line.cutUntilMs || lot < registryFaults / 4) return
        const isSlow = lot >= registryFaults / 4 && lot < registryFaults / 2
        const isUnanswered = lot >= registryFaults / 2 && lot < registryFaults * 0.75
        const fails = lot >= registryFaults * 0.75 && lot < registryFaults
        time.later(isSlow ? time.random() * SLOW_MS : wayMs(), () => {
          const exit = Effect.runSyncExit(effect)
          if (isUnanswered) return
          const away = Effect.fail(new StorageUnavailable({ detail: "as simulated" }))
          time.on(computer, wayMs(), () => resume(fails ? away : exit))
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

  /** Tells of changes in their order, late; of what the node is cut off from, afterwards. */
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
      if (!reaches()) return schedule(CUT_LOOK_MS)
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
        // Of a key that changes often only the latest may be told.
        waiting.delete(entry.key)
        waiting.set(entry.key, entry)
        const isSlow = time.random() < this.noise.registryFaults
        schedule(time.random() * (isSlow ? WATCH_SLOW_MS : WAY_MS * 2))
      }),
      () => Effect.sync(() => void (begun = true))
    )
  }
}
