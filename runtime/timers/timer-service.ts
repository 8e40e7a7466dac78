/**
 * The timer service of a node. It knows when the next timers and signals of the node's shards are
 * due, and delivers each as the timer message of the behavior.
 *
 * The store has all timers and signals. A window in memory has the earliest ones of each shard; the
 * service loads more into a window when few are left. The commit of the decision on a timer removes
 * the timer from the store. If the node crashes before that commit, the timer fires again.
 */
import { Effect, type Fiber } from "effect"
import { type Address, fromKey, keyOf, shardOf } from "../actor/index.ts"
import type { Fork } from "../clock.ts"
import type { Limits } from "../limits.ts"
import type { StorageApi, StoredTimer, TimerCursor, TimerPage } from "../ports/index.ts"
import { RescanSchedule } from "./rescan-schedule.ts"

/** A signal that one actor set for another. */
export interface FiredSignal {
  /**
   * A commit names this revision to remove the signal from the store. NaN: the commit of the signal
   * is lost, and the store may have none.
   */
  readonly revision: number
  readonly hint: number | undefined
}

/** The first character of a signal's key. The key of an actor's own timer is the actor's key. */
const signalMark = "!"

const signalKeyOf = (address: Address): string => signalMark + keyOf(address)

const timerKeyOf = ({ address, signalRevision }: StoredTimer): string =>
  signalRevision === undefined ? keyOf(address) : signalKeyOf(address)

const addressOf = (key: string): Address =>
  fromKey(key.startsWith(signalMark) ? key.slice(signalMark.length) : key)

/** A binary min-heap of keys by due time. It may contain outdated entries: their time changed. */
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
 * Why a timer stays in memory, even beyond the end of the window. `deferred`: it fires at another
 * time than the stored one, because it is deferred or its commit is indeterminate. `undelivered`:
 * the service could not deliver it.
 */
type PinReason = "deferred" | "undelivered"

/** A due timer or signal that the window has passed on for delivery. */
interface DueTimer {
  readonly key: string
  readonly signal: FiredSignal | undefined
  /** Its time in the store; undefined when the window had another time for it. */
  readonly storedMs: number | undefined
}

/** The heap may always contain this many outdated entries: removing them costs more. */
const outdatedEntriesMax = 64

/**
 * The earliest timers and signals of one shard. The window does not keep a timer that a commit sets
 * beyond the end of the window: the store has it.
 */
export class TimerWindow {
  /** How many timers and signals of the window could not be delivered. */
  undelivered = 0
  private readonly dueMs = new Map<string, number>()
  private readonly pinned = new Map<string, PinReason>()
  /** The signals in the window, by key. */
  private readonly signals = new Map<string, FiredSignal>()
  /** How many unfinished commits set a signal, by its key. */
  private readonly unfinishedSignals = new Map<string, number>()
  /** How many deliveries are not answered yet, by key. */
  private readonly inFlight = new Map<string, number>()
  private readonly heap = new TimerHeap()
  private readonly max: number
  /** Where the next load continues; undefined: at the beginning, or the window is complete. */
  private from: TimerCursor | undefined = undefined
  /** The store has no own timers beyond the window. */
  private complete = false
  /** The store may have signals that are not in the window. */
  private hasMoreSignals = true
  /** A load was requested and has not begun. */
  private isRequested = false
  /** The next load begins at the beginning, and reads again what earlier loads have read. */
  private isRescan = false
  /**
   * Keys that were set or cleared since a load was requested; undefined: no load is requested or
   * under way. The load may have read a key before its change, so the window has the newer time.
   * The load determines the end of the window, so the window keeps all of these keys until then.
   */
  private changed: Set<string> | undefined = undefined

  /** `max`: how many timers and signals a load adds at most. */
  constructor(max: number) {
    this.max = max
  }

  /** How many timers and signals are in memory. */
  get size(): number {
    return this.dueMs.size
  }

  /** The earliest due time, ms since the epoch. */
  get earliestMs(): number | undefined {
    const { dueMs, heap } = this
    for (;;) {
      const key = heap.peekKey()
      const atMs = heap.peek()
      if (key === undefined || dueMs.get(key) === atMs) return atMs
      heap.pop()
    }
  }

  /** How many timers and signals are due. */
  overdue(nowMs: number): number {
    const { earliestMs } = this
    if (earliestMs === undefined || earliestMs > nowMs) return 0
    let count = 0
    for (const atMs of this.dueMs.values()) if (atMs <= nowMs) count++
    return count
  }

  /** The window has every stored timer before this time, and may have some at this time. */
  private get endMs(): number {
    return this.complete ? Number.POSITIVE_INFINITY : this.from?.atMs ?? Number.NEGATIVE_INFINITY
  }

  /** Whether few timers are left, and the store may have more that are due before `untilMs`. */
  isLow(untilMs: number): boolean {
    return this.changed === undefined && !this.isRequested &&
      (this.hasMoreSignals || this.endMs < untilMs) &&
      this.dueMs.size - this.pinned.size <= this.max / 4
  }

  isDeferred(key: string): boolean {
    return this.pinned.get(key) === "deferred"
  }

  timeOf(key: string): number | undefined {
    return this.dueMs.get(key)
  }

  signalOf(key: string): FiredSignal | undefined {
    return this.signals.get(key)
  }

  /** Applies a durable commit that sets (`atMs`) or clears (null) the timer or signal. */
  set(key: string, atMs: number | null, signal?: FiredSignal): void {
    this.changed?.add(key)
    this.unpin(key)
    // Signals are due at once, so the window has them wherever it ends.
    if (
      atMs === null || (this.changed === undefined && signal === undefined && atMs > this.endMs)
    ) {
      this.remove(key)
      return
    }
    this.put(key, atMs, signal)
    if (this.changed === undefined) this.shrink()
  }

  /** Keeps a timer or signal in memory, at another time than the stored one. */
  pin(key: string, atMs: number, why: PinReason, signal?: FiredSignal): void {
    this.changed?.add(key)
    this.unpin(key)
    this.pinned.set(key, why)
    if (why === "undelivered") this.undelivered++
    this.put(key, atMs, signal)
  }

  /** The clock was set back by this time. Pinned timers move, since they wait for a duration. */
  movePinned(backMs: number): void {
    for (const key of this.pinned.keys()) {
      const atMs = this.dueMs.get(key)
      if (atMs !== undefined && atMs < Infinity) this.put(key, atMs - backMs, undefined)
    }
  }

  /** A commit that sets this signal begins; {@link endSignalCommit} follows. */
  beginSignalCommit(key: string): void {
    this.unfinishedSignals.set(key, (this.unfinishedSignals.get(key) ?? 0) + 1)
  }

  endSignalCommit(key: string): void {
    const left = (this.unfinishedSignals.get(key) ?? 1) - 1
    left === 0 ? this.unfinishedSignals.delete(key) : this.unfinishedSignals.set(key, left)
  }

  /** Whether no later signal is in the window, and no unfinished commit sets one. */
  isLatestSignal(key: string, revision: number): boolean {
    return !this.unfinishedSignals.has(key) && (this.signals.get(key)?.revision ?? 0) <= revision
  }

  /** Removes the earliest due timer or signal for delivery; {@link endDelivery} follows. */
  take(nowMs: number): DueTimer | undefined {
    const atMs = this.earliestMs
    if (atMs === undefined || atMs > nowMs) return
    const key = this.heap.pop()?.key
    if (key === undefined) return
    const signal = this.signals.get(key)
    const storedMs = this.pinned.has(key) ? undefined : atMs
    this.unpin(key)
    this.remove(key)
    this.inFlight.set(key, (this.inFlight.get(key) ?? 0) + 1)
    return { key, signal, storedMs }
  }

  endDelivery(key: string): void {
    const left = (this.inFlight.get(key) ?? 1) - 1
    left === 0 ? this.inFlight.delete(key) : this.inFlight.set(key, left)
  }

  /** Requests a load. `isRescan`: it begins at the beginning, and reads everything again. */
  request(isRescan: boolean): void {
    this.isRequested = true
    this.isRescan ||= isRescan
    // The load may move the end of the window beyond timers that are set before it begins.
    this.changed ??= new Set()
  }

  /** Begins a load. `limit` counts the pinned and delivered timers, since the load skips them. */
  beginLoad(): { readonly from: TimerCursor | undefined; readonly limit: number } {
    this.isRequested = false
    if (this.isRescan) {
      this.from = undefined
      this.complete = false
      this.isRescan = false
    }
    this.changed ??= new Set()
    return { from: this.from, limit: this.max + this.pinned.size + this.inFlight.size }
  }

  /** Adds what a load has read. Returns whether that is new: more timers, or a later end. */
  finishLoad({ hasMoreSignals, next, timers }: TimerPage): boolean {
    const { changed, dueMs, from, inFlight, pinned } = this
    if (changed === undefined) return true
    const before = dueMs.size
    for (const timer of timers) {
      const key = timerKeyOf(timer)
      const { atMs, signalRevision } = timer
      const signal = signalRevision === undefined
        ? undefined
        : { revision: signalRevision, hint: undefined }
      const knownMs = dueMs.get(key)
      // The store may have an earlier time: it kept a commit that a node had given up.
      const isKnown = knownMs !== undefined &&
        (signal !== undefined || pinned.has(key) || knownMs <= atMs)
      // A timer in delivery is still in the store, but the decision on it sets its next time.
      if (!isKnown && !inFlight.has(key) && !changed.has(key)) this.put(key, atMs, signal)
      else if (signal !== undefined) this.replaceSignal(key, atMs, signal)
    }
    const isForward = dueMs.size > before || next?.atMs !== from?.atMs ||
      next?.after !== from?.after
    this.complete = next === undefined
    this.from = next
    this.hasMoreSignals = hasMoreSignals
    for (const key of changed) {
      if (!this.signals.has(key) && (dueMs.get(key) ?? 0) > this.endMs && !pinned.has(key)) {
        this.remove(key)
      }
    }
    this.changed = undefined
    this.shrink()
    return isForward
  }

  /** Takes the stored signal if it is later: its commit was indeterminate for this node. */
  private replaceSignal(key: string, atMs: number, signal: FiredSignal): void {
    const known = this.signals.get(key)
    if (known === undefined || known.revision >= signal.revision) return
    if (this.isDeferred(key)) this.set(key, atMs, signal)
    else this.signals.set(key, signal)
  }

  private unpin(key: string): void {
    if (this.pinned.get(key) === "undelivered") this.undelivered--
    this.pinned.delete(key)
  }

  private put(key: string, atMs: number, signal: FiredSignal | undefined): void {
    const { dueMs, heap } = this
    if (signal !== undefined) this.signals.set(key, signal)
    if (dueMs.get(key) === atMs) return
    dueMs.set(key, atMs)
    heap.push(atMs, key)
    // `earliestMs` removes only outdated entries that come first, so others could fill the memory.
    if (heap.size > 2 * dueMs.size + outdatedEntriesMax) heap.reset(dueMs)
  }

  private remove(key: string): void {
    this.dueMs.delete(key)
    this.signals.delete(key)
  }

  /** Ends the window earlier when it has too many timers: the store has the others. */
  private shrink(): void {
    const { dueMs, heap, max, pinned } = this
    if (dueMs.size - pinned.size <= 2 * max) return
    const inOrder = [...dueMs].filter(([key]) => !pinned.has(key)).sort(([, a], [, b]) => a - b)
    const endMs = inOrder[max - 1]?.[1] ?? this.endMs
    if (endMs < this.endMs) {
      this.from = { atMs: endMs, after: "" }
      this.complete = false
    }
    for (const [key] of inOrder.slice(max)) {
      if (this.signals.has(key)) this.hasMoreSignals = true
      this.remove(key)
    }
    heap.reset(dueMs)
  }
}

/** A delivery was answered, is to be repeated later, or is never to be repeated on this node. */
export type DeliveryResult = "answered" | "later" | "never"

/** A due timer or signal. */
export interface FiredTimer {
  /** undefined: the actor's own timer. */
  readonly signal: FiredSignal | undefined
  /** The stored time of an own timer; undefined when the service does not know it. */
  readonly storedMs: number | undefined
}

/** Delivers a due timer or signal, and calls `onResult` once. */
export type Deliver = (
  address: Address,
  fired: FiredTimer,
  onResult: (result: DeliveryResult) => void
) => void

/** What to read of a shard, see `StorageApi.timers`. */
export interface TimerLoad {
  readonly from: TimerCursor | undefined
  readonly limit: number
  readonly untilMs: number
}

/** The later of two revisions; the known one if the other is NaN. */
export const latestRevision = (one: number, other: number): number =>
  Number.isNaN(one) || other > one ? other : one

/** One signal in place of two. A signal without a hint may be about anything. */
const merged = (one: FiredSignal, other: FiredSignal): FiredSignal => ({
  revision: latestRevision(one.revision, other.revision),
  hint: one.hint === undefined || other.hint === undefined
    ? undefined
    : Math.max(one.hint, other.hint)
})

export class TimerService {
  private readonly windows = new Map<number, TimerWindow>()
  private readonly fork: Fork
  private readonly nowMs: () => number
  private readonly limits: Limits
  private readonly deliver: Deliver
  private readonly load: (shard: number) => void
  private readonly streamOf: StorageApi["streamOf"]
  private readonly rescans: RescanSchedule
  /** How many deliveries are not answered yet, by stream of the store. */
  private readonly inFlight: Array<number> = []
  private sleeper: Fiber.Fiber<void> | undefined = undefined
  private sleepsUntilMs = Number.POSITIVE_INFINITY
  /** The time of day when the service last read the clock. */
  private lastNowMs = Number.NEGATIVE_INFINITY
  private isFiring = false
  private stopped = false

  /** `load` starts to read a shard's timers; {@link TimerService.finishLoad} receives them. */
  constructor(
    fork: Fork,
    nowMs: () => number,
    limits: Limits,
    deliver: Deliver,
    load: (shard: number) => void,
    streamOf: StorageApi["streamOf"]
  ) {
    this.fork = fork
    this.nowMs = nowMs
    this.limits = limits
    this.deliver = deliver
    this.load = load
    this.streamOf = streamOf
    this.rescans = new RescanSchedule(limits)
  }

  /** How many timers and signals are in memory. */
  get size(): number {
    let size = 0
    for (const window of this.windows.values()) size += window.size
    return size
  }

  /** How many deliveries are not answered yet. */
  get inFlightCount(): number {
    return this.inFlight.reduce((sum, count) => sum + count, 0)
  }

  /** How many timers and signals are due and not yet delivered. */
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
   * Applies a durable commit that sets (`atMs`) or clears (null) an actor's own timer. If this node
   * does not own the shard, a later load finds the timer.
   */
  set(address: Address, atMs: number | null): void {
    const shard = shardOf(address)
    const window = this.windows.get(shard)
    if (window === undefined) return
    window.set(keyOf(address), atMs)
    if (atMs !== null) this.sleepUntil(shard, atMs)
    this.refill(shard, window)
  }

  /** Fires an actor's own timer at this time or before; the store may or may not have it. */
  setNoLater(address: Address, atMs: number): void {
    const knownMs = this.windows.get(shardOf(address))?.timeOf(keyOf(address))
    if (knownMs === undefined || atMs < knownMs) this.defer(address, atMs)
  }

  /** Fires an actor's own timer at this time, not at the stored one. */
  defer(address: Address, untilMs: number): void {
    this.pin(address, keyOf(address), untilMs, undefined)
  }

  /** A decision sets a signal; {@link setSignal} follows when the commit has an outcome. */
  beginSignal(address: Address): void {
    this.windows.get(shardOf(address))?.beginSignalCommit(signalKeyOf(address))
  }

  /**
   * Fires a signal whose commit has an outcome. If the actor has a waiting signal already, one
   * signal fires at the earlier time, with the greater hint, or with none if either has none.
   */
  setSignal(address: Address, atMs: number, signal: FiredSignal): void {
    const shard = shardOf(address)
    const window = this.windows.get(shard)
    if (window === undefined) return
    const key = signalKeyOf(address)
    window.endSignalCommit(key)
    const waiting = window.isDeferred(key) ? undefined : window.signalOf(key)
    const dueMs = waiting === undefined ? atMs : Math.min(atMs, window.timeOf(key) ?? atMs)
    window.set(key, dueMs, waiting === undefined ? signal : merged(waiting, signal))
    this.sleepUntil(shard, dueMs)
    this.refill(shard, window)
  }

  /** Fires a signal again at this time, after it has fired, unless a later signal waits. */
  deferSignal(address: Address, untilMs: number, signal: FiredSignal): void {
    const key = signalKeyOf(address)
    if (this.windows.get(shardOf(address))?.signalOf(key) !== undefined) return
    this.pin(address, key, untilMs, { ...signal, hint: undefined })
  }

  /** Revision of an actor's deferred signal; undefined: it has none. */
  deferredSignal(address: Address): number | undefined {
    const window = this.windows.get(shardOf(address))
    const key = signalKeyOf(address)
    return window?.isDeferred(key) === true ? window.signalOf(key)?.revision : undefined
  }

  /** Whether this node knows no later signal to the actor, and no unfinished commit sets one. */
  isLatestSignal(address: Address, revision: number): boolean {
    const window = this.windows.get(shardOf(address))
    return window === undefined || window.isLatestSignal(signalKeyOf(address), revision)
  }

  /** Applies a durable commit that removes the signal of this revision. */
  endSignal(address: Address, revision: number): void {
    const window = this.windows.get(shardOf(address))
    const key = signalKeyOf(address)
    const signal = window?.signalOf(key)
    // A load under way may have read the signal before the commit: `set` makes the load skip it.
    if (signal === undefined || signal.revision <= revision) window?.set(key, null)
  }

  /**
   * Loads the timers of a shard that this node has taken. `expectsLateCommits`: the store may yet
   * keep commits of an earlier owner.
   */
  take(shard: number, expectsLateCommits = false): void {
    this.rescans.begin(shard, expectsLateCommits)
    const window = new TimerWindow(this.limits.shardTimersMax)
    this.windows.set(shard, window)
    this.refill(shard, window)
  }

  /** The store may yet keep commits that a node gave up and that set the shard's timers. */
  expectLateCommits(shard: number): void {
    this.rescans.expectLateCommits(shard)
  }

  /** Reads the shard's timers from the store again. */
  rescan(shard: number): void {
    const window = this.windows.get(shard)
    if (this.stopped || window === undefined) return
    window.request(true)
    this.load(shard)
  }

  /** Starts the rescans that are due, and loads more timers into windows with few left. */
  sweep(): void {
    if (this.stopped) return
    this.checkClock(this.nowMs())
    for (const shard of this.rescans.sweep()) this.rescan(shard)
    for (const [shard, window] of this.windows) this.refill(shard, window)
  }

  /** Begins a load of a shard's timers, and returns what to read. */
  beginLoad(shard: number): TimerLoad {
    const untilMs = this.nowMs() + this.limits.timersLookaheadMs
    return { from: undefined, limit: 1, ...this.windows.get(shard)?.beginLoad(), untilMs }
  }

  /** Adds what a load has read. Returns false if nothing is new: the caller repeats it later. */
  finishLoad(shard: number, page: TimerPage): boolean {
    const window = this.windows.get(shard)
    if (window === undefined) return true
    const isForward = window.finishLoad(page)
    const { earliestMs } = window
    if (earliestMs !== undefined) this.sleepUntil(shard, earliestMs)
    if (isForward) this.refill(shard, window)
    else if (window.isLow(this.refillUntilMs)) {
      window.request(false)
      return false
    }
    return true
  }

  /** Removes the timers of a shard that this node no longer owns from memory. */
  drop(shard: number): void {
    this.windows.delete(shard)
    this.rescans.end(shard)
  }

  stop(): void {
    this.stopped = true
    this.sleeper?.interruptUnsafe()
  }

  /** The service loads more timers into a window that ends before this time. */
  private get refillUntilMs(): number {
    return this.nowMs() + this.limits.timersLookaheadMs / 2
  }

  private refill(shard: number, window: TimerWindow): void {
    if (this.stopped || !window.isLow(this.refillUntilMs)) return
    const stream = this.streamOf(shard)
    let undelivered = 0
    for (const [other, each] of this.windows) {
      if (this.streamOf(other) === stream) undelivered += each.undelivered
    }
    // `fire` calls `refill` again after it has retried these deliveries.
    if (undelivered >= this.limits.timersStuckMax) return
    window.request(false)
    this.load(shard)
  }

  /** Moves the pinned timers when the clock was set back. */
  private checkClock(nowMs: number): void {
    const backMs = this.lastNowMs - nowMs
    this.lastNowMs = nowMs
    if (backMs <= 0) return
    for (const window of this.windows.values()) window.movePinned(backMs)
    this.sleepUntilNext()
  }

  /** Whether one more timer of the shard's stream may be delivered. */
  private hasRoom(shard: number): boolean {
    return (this.inFlight[this.streamOf(shard)] ?? 0) < this.limits.timersInFlightMax
  }

  /** Sleeps until a shard's timer is due. Without room, the end of a delivery starts the sleep. */
  private sleepUntil(shard: number, atMs: number): void {
    if (this.stopped || this.isFiring || atMs >= this.sleepsUntilMs || !this.hasRoom(shard)) return
    this.sleeper?.interruptUnsafe()
    this.sleepsUntilMs = atMs
    const { timerResolutionMs, timerSleepMaxMs } = this.limits
    const leftMs = atMs - this.nowMs()
    // Overdue timers wait too: after a full batch, other work runs first.
    const waitMs = Math.max(1, Math.ceil(leftMs / timerResolutionMs)) * timerResolutionMs
    // After this sleep, the service checks whether the clock has jumped.
    this.sleeper = this.fork(
      Effect.map(Effect.sleep(Math.min(waitMs, timerSleepMaxMs)), this.fire)
    )
  }

  private sleepUntilNext(): void {
    let nextShard: number | undefined
    let nextMs = Number.POSITIVE_INFINITY
    for (const [shard, { earliestMs }] of this.windows) {
      if (earliestMs === undefined || earliestMs >= nextMs || !this.hasRoom(shard)) continue
      nextShard = shard
      nextMs = earliestMs
    }
    if (nextShard !== undefined) this.sleepUntil(nextShard, nextMs)
  }

  /** Delivers the due timers of all shards whose streams have room, in order of time. */
  private readonly fire = (): void => {
    if (this.stopped) return
    this.sleeper = undefined
    this.isFiring = true
    const nowMs = this.nowMs()
    this.checkClock(nowMs)
    const shards = new TimerHeap()
    const addShard = (shard: string, atMs: number | undefined): void => {
      if (atMs !== undefined && atMs <= nowMs) shards.push(atMs, shard)
    }
    for (const [shard, { earliestMs }] of this.windows) addShard(String(shard), earliestMs)
    let left = this.limits.timerBatchMax
    while (left > 0) {
      const shard = shards.pop()?.key
      if (shard === undefined) break
      const window = this.windows.get(Number(shard))
      const due = this.hasRoom(Number(shard)) ? window?.take(nowMs) : undefined
      if (window === undefined || due === undefined) continue
      left--
      this.send(window, due)
      addShard(shard, window.earliestMs)
    }
    this.isFiring = false
    this.sleepsUntilMs = Number.POSITIVE_INFINITY
    this.sleepUntilNext()
    for (const [shard, window] of this.windows) this.refill(shard, window)
  }

  private send(window: TimerWindow, due: DueTimer): void {
    const { key, signal } = due
    const address = addressOf(key)
    const shard = shardOf(address)
    const stream = this.streamOf(shard)
    this.inFlight[stream] = (this.inFlight[stream] ?? 0) + 1
    this.deliver(address, due, (result) => {
      const wasFull = !this.hasRoom(shard)
      this.inFlight[stream] = (this.inFlight[stream] ?? 1) - 1
      window.endDelivery(key)
      // If the node lost the shard meanwhile, the next load of the shard finds the timer.
      const isCurrent = this.windows.get(shard) === window
      if (result !== "answered" && isCurrent && window.timeOf(key) === undefined) {
        // The timer stays in memory, because each load would find it again.
        const retryMs = result === "later" ? this.nowMs() + this.limits.timerRetryMs : Infinity
        window.pin(key, retryMs, "undelivered", signal)
        this.sleepUntil(shard, retryMs)
      }
      if (wasFull) this.sleepUntilNext()
    })
  }

  private pin(
    address: Address,
    key: string,
    atMs: number,
    signal: FiredSignal | undefined
  ): void {
    const shard = shardOf(address)
    const window = this.windows.get(shard)
    if (window === undefined) return
    window.pin(key, atMs, "deferred", signal)
    this.sleepUntil(shard, atMs)
  }
}
