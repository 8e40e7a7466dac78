/**
 * The wake-ups of one shard that this node knows: those that come first, and no more than a few
 * of them, whatever the store has. What a commit sets beyond the window is left to the store;
 * when the window runs low it is loaded anew.
 */
import { keyOf } from "./address.ts"
import { TimerHeap } from "./heap.ts"
import type { TimerPage } from "./ports/storage.ts"

/**
 * Why a wake-up stays in memory wherever the window ends, since the store has another time for
 * it: it is held, or armed by a commit in doubt; or it could not be delivered.
 */
type Kept = "held" | "stuck"

/** So many overtaken entries cost less than sorting them out. */
const compactFrom = 64

export class TimerWindow {
  /** How many could not be delivered. */
  stuck = 0
  private readonly due = new Map<string, number>()
  private readonly kept = new Map<string, Kept>()
  /** Delivered and not yet answered: how often each. */
  private readonly flying = new Map<string, number>()
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

  /** How many wake-ups are known. */
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
      this.due.size - this.kept.size <= this.max / 4
  }

  /** How many to read, so that `max` are new beside those that the load will skip. */
  get loadLimit(): number {
    return this.max + this.kept.size + this.flying.size
  }

  isHeld(key: string): boolean {
    return this.kept.get(key) === "held"
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
  keep(key: string, atMs: number, why: Kept): void {
    this.changed?.add(key)
    this.release(key)
    this.kept.set(key, why)
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
    this.flying.set(key, (this.flying.get(key) ?? 0) + 1)
    return key
  }

  landed(key: string): void {
    const left = (this.flying.get(key) ?? 1) - 1
    left === 0 ? this.flying.delete(key) : this.flying.set(key, left)
  }

  /** A load is asked for. */
  begin(): void {
    this.changed ??= new Set()
  }

  /** Takes what the store had; whether there is nothing more to load just now. */
  loaded({ complete, wakes }: TimerPage): boolean {
    const { changed, due, flying, kept } = this
    if (changed === undefined) return true
    const before = due.size
    for (const { address, atMs } of wakes) {
      const key = keyOf(address)
      // What is in delivery is still in the store, but its decision says what comes next.
      if (!due.has(key) && !flying.has(key) && !changed.has(key)) this.put(key, atMs)
    }
    const brought = due.size > before
    this.untilMs = complete
      ? Number.POSITIVE_INFINITY
      : wakes.at(-1)?.atMs ?? Number.NEGATIVE_INFINITY
    for (const key of changed) {
      if ((due.get(key) ?? this.untilMs) >= this.untilMs && !kept.has(key)) due.delete(key)
    }
    this.changed = undefined
    this.shrink()
    return brought || !this.low
  }

  private release(key: string): void {
    if (this.kept.get(key) === "stuck") this.stuck--
    this.kept.delete(key)
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
    const { due, heap, kept, max } = this
    if (due.size - kept.size <= 2 * max) return
    const inOrder = [...due].filter(([key]) => !kept.has(key)).sort(([, a], [, b]) => a - b)
    this.untilMs = inOrder[max - 1]?.[1] ?? this.untilMs
    for (const [key] of inOrder.slice(max)) due.delete(key)
    heap.reset(due)
  }
}
