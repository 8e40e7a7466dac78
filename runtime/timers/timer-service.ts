/**
 * The timer service of a node: when the next timers and signals of its shards
 * are due. The store has all of them; of each shard the first few are in memory, in a window that
 * is loaded again when it runs low. A due timer or signal is delivered as the behavior's message,
 * and ends with the commit of the decision on it, so that a crash in between finds it again.
 */
import { Effect, type Fiber } from "effect"
import { type Address, fromKey, keyOf, shardOf } from "../actor/index.ts"
import type { Fork } from "../clock.ts"
import type { Limits } from "../limits.ts"
import type { StorageApi, StoredTimer, TimerCursor, TimerPage } from "../ports/index.ts"

/** A signal of an actor to another. */
export interface FiredSignal {
  /** Of the stored signal, which a commit names to remove it; NaN when that is not known. */
  readonly revision: number
  readonly hint: number | undefined
}

/** Begins the key of a signal in a window; an actor's own timer has the actor's key. */
const signalMark = "!"

const signalKeyOf = (address: Address): string => signalMark + keyOf(address)

const timerKeyOf = ({ address, signalRevision }: StoredTimer): string =>
  signalRevision === undefined ? keyOf(address) : signalKeyOf(address)

const addressOf = (key: string): Address =>
  fromKey(key.startsWith(signalMark) ? key.slice(signalMark.length) : key)

/** A binary min-heap of keys by due time. It may keep entries that a later time has replaced. */
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
 * Why a timer stays in memory wherever the window ends: the store has another time for it, since
 * it is deferred or of an indeterminate commit; or it could not be delivered.
 */
type PinReason = "deferred" | "undelivered"

/** A timer or signal that is to be delivered. */
interface DueTimer {
  readonly key: string
  readonly signal: FiredSignal | undefined
  /** Its time in the store; undefined when the window knew another one. */
  readonly storedMs: number | undefined
}

/** So many outdated entries of a heap cost less than removing them. */
const outdatedEntriesMax = 64

/**
 * The timers and signals of one shard that come first. What a commit sets beyond the end of the
 * window is left to the store.
 */
export class TimerWindow {
  /** How many could not be delivered. */
  undelivered = 0
  private readonly dueMs = new Map<string, number>()
  private readonly pinned = new Map<string, PinReason>()
  /** Of the signals that are in the window. */
  private readonly signals = new Map<string, FiredSignal>()
  /** Signals that commits under way set: how many for each key. */
  private readonly signalsBegun = new Map<string, number>()
  /** Delivered and not yet answered: how often each. */
  private readonly inFlight = new Map<string, number>()
  private readonly heap = new TimerHeap()
  private readonly max: number
  /** Where the next load continues; undefined: at the beginning, or nowhere if it is complete. */
  private from: TimerCursor | undefined = undefined
  /** The store has no own timers beyond the window. */
  private complete = false
  /** The store may have signals that are not in the window. */
  private hasMoreSignals = true
  /** A load was requested, and has not begun. */
  private isRequested = false
  /** The next load begins at the beginning, also of what was loaded before. */
  private isRescan = false
  /**
   * Keys that were set or cleared since the load under way began; undefined when none is. The load
   * may have read these keys before the change, so the window's times are newer. Where the window
   * will end is not known yet, so it keeps all of them until then.
   */
  private changed: Set<string> | undefined = undefined

  /** `max` is how many a load brings. */
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

  /** How many are due. */
  overdue(nowMs: number): number {
    const { earliestMs } = this
    if (earliestMs === undefined || earliestMs > nowMs) return 0
    let count = 0
    for (const atMs of this.dueMs.values()) if (atMs <= nowMs) count++
    return count
  }

  /** The window has all that the store has before this time; of this very time, maybe a part. */
  private get endMs(): number {
    return this.complete ? Number.POSITIVE_INFINITY : this.from?.atMs ?? Number.NEGATIVE_INFINITY
  }

  /** Whether little is left here, and the store may have more that is due before `untilMs`. */
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

  /** A commit is durable that sets (`atMs`) or clears (null) the timer or signal. */
  set(key: string, atMs: number | null, signal?: FiredSignal): void {
    this.changed?.add(key)
    this.unpin(key)
    // Signals are due at once, so the window has them whatever its end.
    if (
      atMs === null || (this.changed === undefined && signal === undefined && atMs > this.endMs)
    ) {
      this.remove(key)
      return
    }
    this.put(key, atMs, signal)
    if (this.changed === undefined) this.shrink()
  }

  /** Keeps a timer or signal at a time that is not the store's. */
  pin(key: string, atMs: number, why: PinReason, signal?: FiredSignal): void {
    this.changed?.add(key)
    this.unpin(key)
    this.pinned.set(key, why)
    if (why === "undelivered") this.undelivered++
    this.put(key, atMs, signal)
  }

  /** The clock was set back by this time: what is pinned waits for a duration, not for a time. */
  advancePins(backMs: number): void {
    for (const key of this.pinned.keys()) {
      const atMs = this.dueMs.get(key)
      if (atMs !== undefined && atMs < Infinity) this.put(key, atMs - backMs, undefined)
    }
  }

  /** A commit under way sets this signal, until {@link settleSignal}. */
  beginSignal(key: string): void {
    this.signalsBegun.set(key, (this.signalsBegun.get(key) ?? 0) + 1)
  }

  settleSignal(key: string): void {
    const left = (this.signalsBegun.get(key) ?? 1) - 1
    left === 0 ? this.signalsBegun.delete(key) : this.signalsBegun.set(key, left)
  }

  /** Whether the store has no signal after this revision, and none is on its way there. */
  isLatestSignal(key: string, revision: number): boolean {
    return !this.signalsBegun.has(key) && (this.signals.get(key)?.revision ?? 0) <= revision
  }

  /** Takes the first that is due, to be delivered; {@link landed} ends the delivery. */
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

  landed(key: string): void {
    const left = (this.inFlight.get(key) ?? 1) - 1
    left === 0 ? this.inFlight.delete(key) : this.inFlight.set(key, left)
  }

  /** A load is to be made; `isRescan`: from the beginning, also of what was loaded before. */
  request(isRescan: boolean): void {
    this.isRequested = true
    this.isRescan ||= isRescan
    // What is set until the load begins may be due before it ends.
    this.changed ??= new Set()
  }

  /** Begins a load: where, and how many to read, so that `max` are new beside the skipped ones. */
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

  /** Adds what a load read; whether it brought the window forward. */
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
      // What is in delivery is still in the store, but its decision says what comes next.
      if (!dueMs.has(key) && !inFlight.has(key) && !changed.has(key)) this.put(key, atMs, signal)
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

  /** The store has a later signal than the window, of a commit whose outcome was not known. */
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
    // Outdated entries are skipped when they come up; those of the far future must not pile up.
    if (heap.size > 2 * dueMs.size + outdatedEntriesMax) heap.reset(dueMs)
  }

  private remove(key: string): void {
    this.dueMs.delete(key)
    this.signals.delete(key)
  }

  /** Ends the window earlier when too many were set within it: the store has them. */
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

interface ScheduledRescan {
  sweepsLeft: number
  /** So many of the next rescans are soon, since a commit is indeterminate. */
  soonLeft: number
}

/**
 * When the store is read again for the timers of a shard. The window has what commits set when they
 * are durable; but the store may keep a commit long after it was given up, here or by an earlier
 * owner, and nobody reports that. Counted in sweeps, since clocks jump.
 */
export class RescanSchedule {
  private readonly shards = new Map<number, ScheduledRescan>()
  private readonly regularSweeps: number
  private readonly soonSweeps: number
  private readonly soonCount: number

  constructor({ sweepMs, timersDoubtRescanMs, timersDoubtRescans, timersRescanMs }: Limits) {
    this.regularSweeps = Math.ceil(timersRescanMs / sweepMs)
    this.soonSweeps = Math.ceil(timersDoubtRescanMs / sweepMs)
    this.soonCount = timersDoubtRescans
  }

  /** This node owns the shard from now on. */
  begin(shard: number, expectsLateCommits: boolean): void {
    // Not all shards in one sweep.
    const sweepsLeft = 1 + shard % this.regularSweeps
    this.shards.set(shard, { sweepsLeft, soonLeft: 0 })
    if (expectsLateCommits) this.expectLateCommits(shard)
  }

  end(shard: number): void {
    this.shards.delete(shard)
  }

  /** The store may yet keep commits of the shard that were given up. */
  expectLateCommits(shard: number): void {
    const rescan = this.shards.get(shard)
    if (rescan === undefined) return
    rescan.soonLeft = this.soonCount
    rescan.sweepsLeft = Math.min(rescan.sweepsLeft, this.soonSweeps)
  }

  /** The shards to rescan in this sweep. */
  sweep(): ReadonlyArray<number> {
    const due: Array<number> = []
    for (const [shard, rescan] of this.shards) {
      if (--rescan.sweepsLeft > 0) continue
      due.push(shard)
      rescan.sweepsLeft = rescan.soonLeft > 0 ? this.soonSweeps : this.regularSweeps
      if (rescan.soonLeft > 0) rescan.soonLeft--
    }
    return due
  }
}

/** What became of a delivery: answered, to be repeated in a while, or never to be repeated here. */
export type DeliveryResult = "answered" | "later" | "never"

/** A due timer or signal. */
export interface FiredTimer {
  /** undefined: the actor's own timer. */
  readonly signal: FiredSignal | undefined
  /** Of an own timer: its time in the store, where the service knows it. */
  readonly storedMs: number | undefined
}

/** Delivers a due timer, or a due signal; `landed` is called once. */
export type Deliver = (
  address: Address,
  fired: FiredTimer,
  landed: (as: DeliveryResult) => void
) => void

/** What to read of a shard, see `StorageApi.timers`. */
export interface TimerLoad {
  readonly from: TimerCursor | undefined
  readonly limit: number
  readonly untilMs: number
}

/** Two signals that come as one. A signal without a hint may be about anything. */
const merged = (one: FiredSignal, other: FiredSignal): FiredSignal => ({
  revision: Math.max(one.revision, other.revision),
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
  /** Deliveries that are not answered, by stream of the store. */
  private readonly inFlight: Array<number> = []
  private sleeper: Fiber.Fiber<void> | undefined = undefined
  private sleepsUntilMs = Number.POSITIVE_INFINITY
  /** The time of day as it was read last. */
  private lastNowMs = Number.NEGATIVE_INFINITY
  private isFiring = false
  private stopped = false

  /** `load` asks for a shard's timers, which come by {@link TimerService.finishLoad}. */
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

  /** How many timers are known. */
  get size(): number {
    let size = 0
    for (const window of this.windows.values()) size += window.size
    return size
  }

  /** How many are delivered and not yet answered. */
  get inFlightCount(): number {
    return this.inFlight.reduce((sum, count) => sum + count, 0)
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
   * An actor's own timer is durable, or cleared (null). Of a shard that this node does not own
   * nothing is kept: a load that begins later finds it.
   */
  set(address: Address, atMs: number | null): void {
    const shard = shardOf(address)
    const window = this.windows.get(shard)
    if (window === undefined) return
    window.set(keyOf(address), atMs)
    if (atMs !== null) this.sleepUntil(shard, atMs)
    this.refill(shard, window)
  }

  /** Fires an actor's own timer at this time, unless it fires before: the store may have it. */
  setNoLater(address: Address, atMs: number): void {
    const knownMs = this.windows.get(shardOf(address))?.timeOf(keyOf(address))
    if (knownMs === undefined || atMs < knownMs) this.defer(address, atMs)
  }

  /** Fires an actor's own timer at this time instead of the store's. */
  defer(address: Address, untilMs: number): void {
    this.pin(address, keyOf(address), untilMs, undefined)
  }

  /** A decision sets a signal; {@link setSignal} follows when its commit is over. */
  beginSignal(address: Address): void {
    this.windows.get(shardOf(address))?.beginSignal(signalKeyOf(address))
  }

  /**
   * The commit of a signal is over. Two signals that wait come as one, at the earlier time, with
   * the greater hint, or none when one of them has none.
   */
  setSignal(address: Address, atMs: number, signal: FiredSignal): void {
    const shard = shardOf(address)
    const window = this.windows.get(shard)
    if (window === undefined) return
    const key = signalKeyOf(address)
    window.settleSignal(key)
    const waiting = window.isDeferred(key) ? undefined : window.signalOf(key)
    const dueMs = waiting === undefined ? atMs : Math.min(atMs, window.timeOf(key) ?? atMs)
    window.set(key, dueMs, waiting === undefined ? signal : merged(waiting, signal))
    this.sleepUntil(shard, dueMs)
    this.refill(shard, window)
  }

  /** Fires a signal that has fired once more, at this time, unless a later one comes before. */
  deferSignal(address: Address, untilMs: number, signal: FiredSignal): void {
    const key = signalKeyOf(address)
    if (this.windows.get(shardOf(address))?.signalOf(key) !== undefined) return
    this.pin(address, key, untilMs, { ...signal, hint: undefined })
  }

  /** Revision of the signal of an actor that is deferred. */
  deferredSignal(address: Address): number | undefined {
    const window = this.windows.get(shardOf(address))
    const key = signalKeyOf(address)
    return window?.isDeferred(key) === true ? window.signalOf(key)?.revision : undefined
  }

  /** Whether the store has no signal after this revision, and none is on its way there. */
  isLatestSignal(address: Address, revision: number): boolean {
    const window = this.windows.get(shardOf(address))
    return window === undefined || window.isLatestSignal(signalKeyOf(address), revision)
  }

  /** A commit is durable that removes the signal of this revision. */
  endSignal(address: Address, revision: number): void {
    const window = this.windows.get(shardOf(address))
    const key = signalKeyOf(address)
    const signal = window?.signalOf(key)
    // A load under way may have read it before.
    if (signal === undefined || signal.revision <= revision) window?.set(key, null)
  }

  /**
   * This node has taken a shard: its timers are loaded. `expectsLateCommits`: the store may yet
   * keep commits of its last owner.
   */
  take(shard: number, expectsLateCommits = false): void {
    this.rescans.begin(shard, expectsLateCommits)
    const window = new TimerWindow(this.limits.shardTimersMax)
    this.windows.set(shard, window)
    this.refill(shard, window)
  }

  /** The store may yet keep commits that set timers of the shard, and were given up. */
  expectLateCommits(shard: number): void {
    this.rescans.expectLateCommits(shard)
  }

  /** Reads the store again for timers of commits that were given up, and further ahead. */
  sweep(): void {
    if (this.stopped) return
    this.noticeClock(this.nowMs())
    for (const shard of this.rescans.sweep()) {
      this.windows.get(shard)?.request(true)
      this.load(shard)
    }
    for (const [shard, window] of this.windows) this.refill(shard, window)
  }

  /** A load of a shard's timers begins: how many to read, from where, and how far ahead. */
  beginLoad(shard: number): TimerLoad {
    const untilMs = this.nowMs() + this.limits.timersLookaheadMs
    return { from: undefined, limit: 1, ...this.windows.get(shard)?.beginLoad(), untilMs }
  }

  /** Adds what a load read; false when it brought nothing new, and is to be repeated later. */
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

  /** Forgets the timers of a shard that this node no longer owns. */
  drop(shard: number): void {
    this.windows.delete(shard)
    this.rescans.end(shard)
  }

  stop(): void {
    this.stopped = true
    this.sleeper?.interruptUnsafe()
  }

  /** A window that ends before this time is loaded further. */
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
    // Each round of their deliveries comes here again.
    if (undelivered >= this.limits.timersStuckMax) return
    window.request(false)
    this.load(shard)
  }

  private noticeClock(nowMs: number): void {
    const backMs = this.lastNowMs - nowMs
    this.lastNowMs = nowMs
    if (backMs <= 0) return
    for (const window of this.windows.values()) window.advancePins(backMs)
    this.sleepUntilNext()
  }

  /** Whether one more timer of the shard's stream may be delivered. */
  private hasRoom(shard: number): boolean {
    return (this.inFlight[this.streamOf(shard)] ?? 0) < this.limits.timersInFlightMax
  }

  /** A timer of this shard is due then. Without room for it, a delivery that lands wakes it. */
  private sleepUntil(shard: number, atMs: number): void {
    if (this.stopped || this.isFiring || atMs >= this.sleepsUntilMs || !this.hasRoom(shard)) return
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

  /** Delivers what is due, in order of time over all shards whose streams have room. */
  private readonly fire = (): void => {
    if (this.stopped) return
    this.sleeper = undefined
    this.isFiring = true
    const nowMs = this.nowMs()
    this.noticeClock(nowMs)
    const shards = new TimerHeap()
    const join = (shard: string, atMs: number | undefined): void => {
      if (atMs !== undefined && atMs <= nowMs) shards.push(atMs, shard)
    }
    for (const [shard, { earliestMs }] of this.windows) join(String(shard), earliestMs)
    let left = this.limits.timerBatchMax
    while (left > 0) {
      const shard = shards.pop()?.key
      if (shard === undefined) break
      const window = this.windows.get(Number(shard))
      const due = this.hasRoom(Number(shard)) ? window?.take(nowMs) : undefined
      if (window === undefined || due === undefined) continue
      left--
      this.send(window, due)
      join(shard, window.earliestMs)
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
      window.landed(key)
      // A shard that was lost meanwhile is its new owner's; taken again, it was loaded again.
      const isCurrent = this.windows.get(shard) === window
      if (result !== "answered" && isCurrent && window.timeOf(key) === undefined) {
        // Kept in memory, so that a timer that cannot be delivered is not loaded again and again.
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
