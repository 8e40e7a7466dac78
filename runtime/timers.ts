/**
 * Durable wake-ups of the shards that this node owns. The store keeps them; the heap here only
 * knows when each is due. A wake-up is delivered as the behaviour's message, and is over when
 * the decision on it is committed, so that a crash in between finds it again.
 */
import { Effect, type Fiber } from "effect"
import { type Address, fromKey, keyOf, shardOf } from "./address.ts"
import type { Fork } from "./deadline.ts"
import { DueHeap } from "./heap.ts"
import type { Limits } from "./limits.ts"
import type { Wake } from "./ports/storage.ts"

/** Delivers one due wake-up; `undone` is called when it could not be, so that it comes again. */
export type Deliver = (address: Address, undone: () => void) => void

/** So many overtaken entries cost less than sorting them out. */
const compactFrom = 64

export class Timers {
  private readonly heap = new DueHeap()
  private readonly due = new Map<string, number>()
  private readonly fork: Fork
  private readonly nowMs: () => number
  private readonly limits: Limits
  private readonly deliver: Deliver
  private sleeper: Fiber.Fiber<void> | undefined = undefined
  private sleepsUntilMs = Number.POSITIVE_INFINITY
  private stopped = false

  constructor(fork: Fork, nowMs: () => number, limits: Limits, deliver: Deliver) {
    this.fork = fork
    this.nowMs = nowMs
    this.limits = limits
    this.deliver = deliver
  }

  /** How many wake-ups are known. */
  get size(): number {
    return this.due.size
  }

  /** The earliest due time, ms since the epoch. */
  get earliestMs(): number | undefined {
    this.skipOvertaken()
    return this.heap.peek()
  }

  /** Sets the only wake-up of an address; null clears it. */
  set(address: Address, atMs: number | null): void {
    const key = keyOf(address)
    if (atMs === null) {
      this.due.delete(key)
      return
    }
    if (this.due.get(key) === atMs) return
    this.due.set(key, atMs)
    this.heap.push(atMs, key)
    // Overtaken entries are skipped when they come up; those of the far future must not pile up.
    if (this.heap.size > 2 * this.due.size + compactFrom) this.heap.reset(this.due)
    if (atMs < this.sleepsUntilMs) this.sleep()
  }

  /** Sets the wake-up of an address unless it has an earlier one. */
  setNoLater(address: Address, atMs: number): void {
    if (atMs < (this.due.get(keyOf(address)) ?? Number.POSITIVE_INFINITY)) this.set(address, atMs)
  }

  /** Takes what the store had when this node took the shard; what was set since is newer. */
  load({ address, atMs }: Wake): void {
    if (!this.due.has(keyOf(address))) this.set(address, atMs)
  }

  /** Forgets the wake-ups of a shard that this node no longer owns. */
  drop(shard: number): void {
    for (const key of this.due.keys()) if (shardOf(fromKey(key)) === shard) this.due.delete(key)
  }

  stop(): void {
    this.stopped = true
    this.sleeper?.interruptUnsafe()
  }

  private skipOvertaken(): void {
    for (;;) {
      const atMs = this.heap.peek()
      if (atMs === undefined) return
      const top = this.heap.pop()
      if (top === undefined) return
      if (this.due.get(top.key) === top.atMs) return this.heap.push(top.atMs, top.key)
    }
  }

  private sleep(): void {
    if (this.stopped) return
    const next = this.earliestMs
    this.sleeper?.interruptUnsafe()
    this.sleeper = undefined
    this.sleepsUntilMs = next ?? Number.POSITIVE_INFINITY
    if (next === undefined) return
    const { timerResolutionMs: grid, timerSleepMaxMs } = this.limits
    const leftMs = next - this.nowMs()
    // What is overdue waits for the next grid too, so that a full batch leaves room for others.
    const waitMs = Math.max(1, Math.ceil(leftMs / grid)) * grid
    // A clock that jumps is noticed within the longest sleep.
    this.sleeper = this.fork(
      Effect.map(Effect.sleep(Math.min(waitMs, timerSleepMaxMs)), this.fire)
    )
  }

  private readonly fire = (): void => {
    this.sleeper = undefined
    const nowMs = this.nowMs()
    for (let left = this.limits.wakeBatchMax; left > 0; left--) {
      const atMs = this.earliestMs
      if (atMs === undefined || atMs > nowMs) break
      const top = this.heap.pop()
      if (top === undefined) break
      this.due.delete(top.key)
      const address = fromKey(top.key)
      this.deliver(address, () => {
        if (!this.stopped && !this.due.has(top.key)) {
          this.set(address, this.nowMs() + this.limits.wakeRetryMs)
        }
      })
    }
    this.sleep()
  }
}
