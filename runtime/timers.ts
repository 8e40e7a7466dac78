/**
 * Durable wake-ups of the shards that this node owns. The store keeps them; here is known when
 * the next ones are due. A wake-up is delivered as the behaviour's message, and is over when
 * the decision on it is committed, so that a crash in between finds it again.
 */
import { Effect, type Fiber } from "effect"
import { type Address, fromKey, keyOf, shardOf } from "./address.ts"
import type { Fork } from "./deadline.ts"
import { TimerHeap } from "./heap.ts"
import type { Limits } from "./limits.ts"
import { RescanSchedule } from "./looks.ts"
import type { TimerPage } from "./ports/storage.ts"
import { TimerWindow } from "./window.ts"

/** What became of a wake-up: answered, to be tried again in a while, or never to be told here. */
export type Landing = "answered" | "later" | "never"

/** Delivers one due wake-up; `landed` is called once. */
export type Deliver = (address: Address, landed: (as: Landing) => void) => void

export class TimerService {
  private readonly windows = new Map<number, TimerWindow>()
  private readonly fork: Fork
  private readonly nowMs: () => number
  private readonly limits: Limits
  private readonly deliver: Deliver
  private readonly load: (shard: number) => void
  private readonly looks: RescanSchedule
  private inFlight = 0
  private sleeper: Fiber.Fiber<void> | undefined = undefined
  private sleepsUntilMs = Number.POSITIVE_INFINITY
  /** "full": there is no room for one more delivery, so nothing is slept for. */
  private phase: "asleep" | "firing" | "full" = "asleep"
  private stopped = false

  /** `load` asks for a shard's wake-ups, which come by {@link TimerService.loaded}. */
  constructor(
    fork: Fork,
    nowMs: () => number,
    limits: Limits,
    deliver: Deliver,
    load: (shard: number) => void
  ) {
    this.fork = fork
    this.nowMs = nowMs
    this.limits = limits
    this.deliver = deliver
    this.load = load
    this.looks = new RescanSchedule(limits)
  }

  /** How many wake-ups are known. */
  get size(): number {
    let size = 0
    for (const window of this.windows.values()) size += window.size
    return size
  }

  /** How many are delivered and not yet answered. */
  get underWay(): number {
    return this.inFlight
  }

  /** How many are due, and not yet delivered. */
  overdue(): number {
    const nowMs = this.nowMs()
    let count = 0
    for (const window of this.windows.values()) count += window.overdue(nowMs)
    return count
  }

  /** The earliest due time, ms since the epoch. */
  get earliestMs(): number | undefined {
    let earliest = Number.POSITIVE_INFINITY
    for (const { earliestMs } of this.windows.values()) {
      if (earliestMs !== undefined && earliestMs < earliest) earliest = earliestMs
    }
    return earliest === Number.POSITIVE_INFINITY ? undefined : earliest
  }

  /**
   * The only wake-up of an address is durable, or cleared (null). Of a shard that is not held
   * here nothing is noted: a load that begins later finds it.
   */
  set(address: Address, atMs: number | null): void {
    const shard = shardOf(address)
    const window = this.windows.get(shard)
    if (window === undefined) return
    window.set(keyOf(address), atMs)
    if (atMs !== null) this.sleepUntil(atMs)
    this.refill(shard, window)
  }

  /** Sets what another actor set; what is held is not put off by it. */
  setForeign(address: Address, atMs: number): void {
    const held = this.windows.get(shardOf(address))?.isHeld(keyOf(address)) === true
    held ? this.setNoLater(address, atMs) : this.set(address, atMs)
  }

  /**
   * Wakes an address unless it has an earlier wake-up. Whether the store has this one may be in
   * doubt, and be settled late: so it stays in memory, wherever the window ends.
   */
  setNoLater(address: Address, atMs: number): void {
    const known = this.windows.get(shardOf(address))?.dueMs(keyOf(address))
    if (known === undefined || atMs < known) this.hold(address, atMs)
  }

  /** Wakes an address at this time instead of the store's. */
  hold(address: Address, untilMs: number): void {
    const window = this.windows.get(shardOf(address))
    if (window === undefined) return
    window.keep(keyOf(address), untilMs, "held")
    this.sleepUntil(untilMs)
  }

  /**
   * This node has taken a shard: what it has is loaded. What is set meanwhile is newer. `inDoubt`:
   * commits of its last owner may be kept yet.
   */
  take(shard: number, inDoubt = false): void {
    this.looks.begin(shard, inDoubt)
    const window = new TimerWindow(this.limits.shardWakesMax)
    this.windows.set(shard, window)
    this.refill(shard, window)
  }

  /** A commit that set wake-ups of the shard was given up: the store may have them later. */
  doubt(shard: number): void {
    this.looks.doubt(shard)
  }

  /** Looks for wake-ups that are kept by now, and that nobody here was told of. */
  sweep(): void {
    if (this.stopped) return
    for (const shard of this.looks.sweep()) {
      this.windows.get(shard)?.begin()
      this.load(shard)
    }
  }

  /** How many wake-ups of a shard are to be read. */
  loadLimit(shard: number): number {
    return this.windows.get(shard)?.loadLimit ?? 1
  }

  /** Takes what the store had; false when it brought nothing and is to be asked again later. */
  loaded(shard: number, soonest: TimerPage): boolean {
    const window = this.windows.get(shard)
    if (window === undefined) return true
    const enough = window.loaded(soonest)
    if (!enough) window.begin()
    const { earliestMs } = window
    if (earliestMs !== undefined) this.sleepUntil(earliestMs)
    if (enough) this.refill(shard, window)
    return enough
  }

  /** Forgets the wake-ups of a shard that this node no longer owns. */
  drop(shard: number): void {
    this.windows.delete(shard)
    this.looks.end(shard)
  }

  stop(): void {
    this.stopped = true
    this.sleeper?.interruptUnsafe()
  }

  private refill(shard: number, window: TimerWindow): void {
    if (this.stopped || !window.low) return
    let stuck = 0
    for (const each of this.windows.values()) stuck += each.stuck
    // Those that are stuck are tried again; each round of that looks here again.
    if (stuck >= this.limits.wakesStuckMax) return
    window.begin()
    this.load(shard)
  }

  private sleepUntil(atMs: number): void {
    if (this.stopped || this.phase !== "asleep" || atMs >= this.sleepsUntilMs) return
    this.sleeper?.interruptUnsafe()
    this.sleepsUntilMs = atMs
    const { timerResolutionMs: grid, timerSleepMaxMs } = this.limits
    const leftMs = atMs - this.nowMs()
    // What is overdue waits for the next grid too, so that a full batch leaves room for others.
    const waitMs = Math.max(1, Math.ceil(leftMs / grid)) * grid
    // A clock that jumps is noticed within the longest sleep.
    this.sleeper = this.fork(
      Effect.map(Effect.sleep(Math.min(waitMs, timerSleepMaxMs)), this.fire)
    )
  }

  /** Sleeps until the next is due; without room, until a delivery lands. */
  private sleep(): void {
    this.phase = this.inFlight >= this.limits.wakesInFlightMax ? "full" : "asleep"
    this.sleepsUntilMs = Number.POSITIVE_INFINITY
    const { earliestMs } = this
    if (earliestMs !== undefined) this.sleepUntil(earliestMs)
  }

  /** Delivers what is due, in order of time over all shards. */
  private readonly fire = (): void => {
    if (this.stopped) return
    this.sleeper = undefined
    this.phase = "firing"
    const nowMs = this.nowMs()
    const shards = new TimerHeap()
    const join = (shard: string, atMs: number | undefined): void => {
      if (atMs !== undefined && atMs <= nowMs) shards.push(atMs, shard)
    }
    for (const [shard, { earliestMs }] of this.windows) join(String(shard), earliestMs)
    const { wakeBatchMax, wakesInFlightMax } = this.limits
    for (let left = wakeBatchMax; left > 0 && this.inFlight < wakesInFlightMax; left--) {
      const shard = shards.pop()?.key
      if (shard === undefined) break
      const window = this.windows.get(Number(shard))
      const key = window?.take(nowMs)
      if (window === undefined || key === undefined) continue
      this.send(window, key)
      join(shard, window.earliestMs)
    }
    this.sleep()
    for (const [shard, window] of this.windows) this.refill(shard, window)
  }

  private send(window: TimerWindow, key: string): void {
    const address = fromKey(key)
    this.inFlight++
    this.deliver(address, (as) => {
      this.inFlight--
      window.landed(key)
      // A shard that was lost meanwhile is its new owner's; taken again, it was loaded again.
      const current = this.windows.get(shardOf(address)) === window
      if (as !== "answered" && current && window.dueMs(key) === undefined) {
        // Kept in memory, so that what cannot be told is not loaded and told again and again.
        const again = as === "later" ? this.nowMs() + this.limits.wakeRetryMs : Infinity
        window.keep(key, again, "stuck")
        this.sleepUntil(again)
      }
      if (this.phase === "full") this.sleep()
    })
  }
}
