/**
 * Durable timers of the shards that this node owns. The store keeps them; here is known when
 * the next ones are due. A timer is delivered as the behavior's message, and is over when
 * the decision on it is committed, so that a crash in between finds it again.
 */
import { Effect, type Fiber } from "effect"
import { type Address, fromKey, keyOf, shardOf } from "../actor/index.ts"
import type { Fork } from "../clock.ts"
import type { Limits } from "../limits.ts"
import type { TimerPage } from "../ports/index.ts"

/** A binary min-heap of keys by due time; whoever pops an overtaken entry skips it. */
export class TimerHeap {
  private readonly times: Array<number> = []
  private readonly keys: Array<string> = []

  get size(): number {
    return this.keys.length
  }

  /** The earliest due time, or undefined. */
  peek(): number | undefined {
    return this.times[0]
  }

  /** The key of the earliest entry, or undefined. */
  peekKey(): string | undefined {
    return this.keys[0]
  }

  push(atMs: number, key: string): void {
    let at = this.keys.length
    this.times.push(atMs)
    this.keys.push(key)
    while (at > 0) {
      const parent = (at - 1) >> 1
      if (this.time(parent) <= atMs) break
      this.move(parent, at)
      at = parent
    }
    this.times[at] = atMs
    this.keys[at] = key
  }

  /** Removes and returns the earliest entry. */
  pop(): { readonly atMs: number; readonly key: string } | undefined {
    const atMs = this.times[0]
    const key = this.keys[0]
    const lastTime = this.times.pop()
    const lastKey = this.keys.pop()
    if (atMs === undefined || key === undefined) return
    if (this.keys.length > 0 && lastTime !== undefined && lastKey !== undefined) {
      this.sink(lastTime, lastKey)
    }
    return { atMs, key }
  }

  /** Keeps these entries and no others. */
  reset(entries: Iterable<readonly [string, number]>): void {
    this.times.length = 0
    this.keys.length = 0
    for (const [key, atMs] of entries) this.push(atMs, key)
  }

  private sink(atMs: number, key: string): void {
    const size = this.keys.length
    let at = 0
    for (;;) {
      let child = 2 * at + 1
      if (child >= size) break
      if (child + 1 < size && this.time(child + 1) < this.time(child)) child++
      if (this.time(child) >= atMs) break
      this.move(child, at)
      at = child
    }
    this.times[at] = atMs
    this.keys[at] = key
  }

  private time(at: number): number {
    return this.times[at] ?? Number.POSITIVE_INFINITY
  }

  private move(from: number, to: number): void {
    this.times[to] = this.time(from)
    this.keys[to] = this.keys[from] ?? ""
  }
}

/**
 * Why a timer stays in memory wherever the window ends, since the store has another time for
 * it: it is held, or armed by a commit in doubt; or it could not be delivered.
 */
type PinReason = "held" | "stuck"

/** So many overtaken entries cost less than sorting them out. */
const compactFrom = 64

export class TimerWindow {
  /** How many could not be delivered. */
  stuck = 0
  private readonly due = new Map<string, number>()
  private readonly pinned = new Map<string, PinReason>()
  /** Delivered and not yet answered: how often each. */
  private readonly inFlight = new Map<string, number>()
  private readonly heap = new TimerHeap()
  private readonly max: number
  /** All that the store has before this time is known; of this very time, maybe a part. */
  private untilMs = Number.NEGATIVE_INFINITY
  /**
   * What was set or cleared since a load was asked for; undefined when none is under way. The
   * load may have read these keys before or after the change, so what is known here is newer.
   * And where the window will end is not known yet, so all of them are kept until it is.
   */
  private changed: Set<string> | undefined = undefined

  /** `max` is how many a load brings. */
  constructor(max: number) {
    this.max = max
  }

  /** How many timers are known. */
  get size(): number {
    return this.due.size
  }

  /** The earliest due time, ms since the epoch. */
  get earliestMs(): number | undefined {
    const { due, heap } = this
    for (;;) {
      const key = heap.peekKey()
      const atMs = heap.peek()
      if (key === undefined || due.get(key) === atMs) return atMs
      heap.pop()
    }
  }

  /** How many are due. */
  overdue(nowMs: number): number {
    const { earliestMs } = this
    if (earliestMs === undefined || earliestMs > nowMs) return 0
    let count = 0
    for (const atMs of this.due.values()) if (atMs <= nowMs) count++
    return count
  }

  /** Whether there is more in the store and little left here. */
  get low(): boolean {
    return this.changed === undefined && this.untilMs < Number.POSITIVE_INFINITY &&
      this.due.size - this.pinned.size <= this.max / 4
  }

  /** How many to read, so that `max` are new beside those that the load will skip. */
  get loadLimit(): number {
    return this.max + this.pinned.size + this.inFlight.size
  }

  isDeferred(key: string): boolean {
    return this.pinned.get(key) === "held"
  }

  dueMs(key: string): number | undefined {
    return this.due.get(key)
  }

  /** What the store has now: a commit that sets or clears it is durable. */
  set(key: string, atMs: number | null): void {
    this.changed?.add(key)
    this.release(key)
    if (atMs === null || (this.changed === undefined && atMs >= this.untilMs)) {
      this.due.delete(key)
      return
    }
    this.put(key, atMs)
    if (this.changed === undefined) this.shrink()
  }

  /** A time that is not the store's. */
  pin(key: string, atMs: number, why: PinReason): void {
    this.changed?.add(key)
    this.release(key)
    this.pinned.set(key, why)
    if (why === "stuck") this.stuck++
    this.put(key, atMs)
  }

  /** The first one that is due now, which is delivered until it has landed. */
  take(nowMs: number): string | undefined {
    const atMs = this.earliestMs
    if (atMs === undefined || atMs > nowMs) return
    const key = this.heap.pop()?.key
    if (key === undefined) return
    this.release(key)
    this.due.delete(key)
    this.inFlight.set(key, (this.inFlight.get(key) ?? 0) + 1)
    return key
  }

  landed(key: string): void {
    const left = (this.inFlight.get(key) ?? 1) - 1
    left === 0 ? this.inFlight.delete(key) : this.inFlight.set(key, left)
  }

  /** A load is asked for. */
  begin(): void {
    this.changed ??= new Set()
  }

  /** Takes what the store had; whether there is nothing more to load just now. */
  loaded({ complete, timers }: TimerPage): boolean {
    const { changed, due, inFlight, pinned } = this
    if (changed === undefined) return true
    const before = due.size
    for (const { address, atMs } of timers) {
      const key = keyOf(address)
      // What is in delivery is still in the store, but its decision says what comes next.
      if (!due.has(key) && !inFlight.has(key) && !changed.has(key)) this.put(key, atMs)
    }
    const brought = due.size > before
    this.untilMs = complete
      ? Number.POSITIVE_INFINITY
      : timers.at(-1)?.atMs ?? Number.NEGATIVE_INFINITY
    for (const key of changed) {
      if ((due.get(key) ?? this.untilMs) >= this.untilMs && !pinned.has(key)) due.delete(key)
    }
    this.changed = undefined
    this.shrink()
    return brought || !this.low
  }

  private release(key: string): void {
    if (this.pinned.get(key) === "stuck") this.stuck--
    this.pinned.delete(key)
  }

  private put(key: string, atMs: number): void {
    const { due, heap } = this
    if (due.get(key) === atMs) return
    due.set(key, atMs)
    heap.push(atMs, key)
    // Overtaken entries are skipped when they come up; those of the far future must not pile up.
    if (heap.size > 2 * due.size + compactFrom) heap.reset(due)
  }

  /** Ends the window earlier when too many were set within it: the store has them. */
  private shrink(): void {
    const { due, heap, pinned, max } = this
    if (due.size - pinned.size <= 2 * max) return
    const inOrder = [...due].filter(([key]) => !pinned.has(key)).sort(([, a], [, b]) => a - b)
    this.untilMs = inOrder[max - 1]?.[1] ?? this.untilMs
    for (const [key] of inOrder.slice(max)) due.delete(key)
    heap.reset(due)
  }
}

/*
 * When the store is looked at once more for the timers of a shard. What a commit has set is known
 * here when it is kept; but a commit that was given up, here or by an owner before, may be kept
 * long after, and nobody is told. Counted in sweeps, since clocks jump.
 */

interface ScheduledRescan {
  sweepsLeft: number
  /** So many of the next ones are soon, since a commit is in doubt. */
  hasty: number
}

export class RescanSchedule {
  private readonly shards = new Map<number, ScheduledRescan>()
  private readonly regular: number
  private readonly soon: number
  private readonly hasty: number

  constructor({ sweepMs, timersDoubtRescanMs, timersDoubtRescans, timersRescanMs }: Limits) {
    this.regular = Math.ceil(timersRescanMs / sweepMs)
    this.soon = Math.ceil(timersDoubtRescanMs / sweepMs)
    this.hasty = timersDoubtRescans
  }

  /** A shard is held from now on. */
  begin(shard: number, inDoubt: boolean): void {
    // Not all of them at once.
    const sweepsLeft = 1 + shard % this.regular
    this.shards.set(shard, { sweepsLeft, hasty: 0 })
    if (inDoubt) this.doubt(shard)
  }

  end(shard: number): void {
    this.shards.delete(shard)
  }

  /** A commit that set timers was given up, and may be kept. */
  doubt(shard: number): void {
    const look = this.shards.get(shard)
    if (look === undefined) return
    look.hasty = this.hasty
    look.sweepsLeft = Math.min(look.sweepsLeft, this.soon)
  }

  /** The shards whose time has come. */
  sweep(): ReadonlyArray<number> {
    const due: Array<number> = []
    for (const [shard, look] of this.shards) {
      if (--look.sweepsLeft > 0) continue
      due.push(shard)
      look.sweepsLeft = look.hasty > 0 ? this.soon : this.regular
      if (look.hasty > 0) look.hasty--
    }
    return due
  }
}

/*
 * The timers of one shard that this node knows: those that come first, and no more than a few
 * of them, whatever the store has. What a commit sets beyond the window is left to the store;
 * when the window runs low it is loaded anew.
 */

/** What became of a timer: answered, to be tried again in a while, or never to be told here. */
export type DeliveryResult = "answered" | "later" | "never"

/** Delivers one due timer; `landed` is called once. */
export type Deliver = (address: Address, landed: (as: DeliveryResult) => void) => void

export class TimerService {
  private readonly windows = new Map<number, TimerWindow>()
  private readonly fork: Fork
  private readonly nowMs: () => number
  private readonly limits: Limits
  private readonly deliver: Deliver
  private readonly load: (shard: number) => void
  private readonly rescans: RescanSchedule
  private inFlight = 0
  private sleeper: Fiber.Fiber<void> | undefined = undefined
  private sleepsUntilMs = Number.POSITIVE_INFINITY
  /** "full": there is no room for one more delivery, so nothing is slept for. */
  private phase: "asleep" | "firing" | "full" = "asleep"
  private stopped = false

  /** `load` asks for a shard's timers, which come by {@link TimerService.loaded}. */
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
    this.rescans = new RescanSchedule(limits)
  }

  /** How many timers are known. */
  get size(): number {
    let size = 0
    for (const window of this.windows.values()) size += window.size
    return size
  }

  /** How many are delivered and not yet answered. */
  get inFlightCount(): number {
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
   * The only timer of an address is durable, or cleared (null). Of a shard that is not held
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
  setSignal(address: Address, atMs: number): void {
    const held = this.windows.get(shardOf(address))?.isDeferred(keyOf(address)) === true
    held ? this.setNoLater(address, atMs) : this.set(address, atMs)
  }

  /**
   * Wakes an address unless it has an earlier timer. Whether the store has this one may be in
   * doubt, and be settled late: so it stays in memory, wherever the window ends.
   */
  setNoLater(address: Address, atMs: number): void {
    const known = this.windows.get(shardOf(address))?.dueMs(keyOf(address))
    if (known === undefined || atMs < known) this.defer(address, atMs)
  }

  /** Wakes an address at this time instead of the store's. */
  defer(address: Address, untilMs: number): void {
    const window = this.windows.get(shardOf(address))
    if (window === undefined) return
    window.pin(keyOf(address), untilMs, "held")
    this.sleepUntil(untilMs)
  }

  /**
   * This node has taken a shard: what it has is loaded. What is set meanwhile is newer. `inDoubt`:
   * commits of its last owner may be kept yet.
   */
  take(shard: number, inDoubt = false): void {
    this.rescans.begin(shard, inDoubt)
    const window = new TimerWindow(this.limits.shardTimersMax)
    this.windows.set(shard, window)
    this.refill(shard, window)
  }

  /** A commit that set timers of the shard was given up: the store may have them later. */
  expectLateCommits(shard: number): void {
    this.rescans.doubt(shard)
  }

  /** Looks for timers that are kept by now, and that nobody here was told of. */
  sweep(): void {
    if (this.stopped) return
    for (const shard of this.rescans.sweep()) {
      this.windows.get(shard)?.begin()
      this.load(shard)
    }
  }

  /** How many timers of a shard are to be read. */
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

  /** Forgets the timers of a shard that this node no longer owns. */
  drop(shard: number): void {
    this.windows.delete(shard)
    this.rescans.end(shard)
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
    if (stuck >= this.limits.timersStuckMax) return
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
    this.phase = this.inFlight >= this.limits.timersInFlightMax ? "full" : "asleep"
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
    const { timerBatchMax, timersInFlightMax } = this.limits
    for (let left = timerBatchMax; left > 0 && this.inFlight < timersInFlightMax; left--) {
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
        const again = as === "later" ? this.nowMs() + this.limits.timerRetryMs : Infinity
        window.pin(key, again, "stuck")
        this.sleepUntil(again)
      }
      if (this.phase === "full") this.sleep()
    })
  }
}
