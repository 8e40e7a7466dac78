/**
 * Asks that no node took, since their shards move: each is tried again in a while, sooner when
 * this node takes its shard.
 */
import type { Later } from "./deadline.ts"
import type { Limits } from "./limits.ts"

/** Tries again; `stopped`: the node has, and it is not to be tried. */
type Try = (stopped: boolean) => void

export class MovedAskRetries {
  private readonly shards = new Map<number, Set<Try>>()
  private readonly later: Later
  private readonly limits: Limits
  private count = 0
  private stopped = false

  constructor(later: Later, limits: Limits) {
    this.later = later
    this.limits = limits
  }

  /** Before the try number `tries`, from 0, ms. */
  delayMs(tries: number): number {
    const { movingDelayMaxMs, movingDelayMs } = this.limits
    return Math.min(movingDelayMs * 2 ** tries, movingDelayMaxMs)
  }

  /** Tries again after the delay; false when there is no room for one more. */
  wait(shard: number, delayMs: number, again: Try): boolean {
    if (this.stopped || this.count >= this.limits.movingAsksMax) return false
    this.count++
    const waiting = this.shards.get(shard) ?? new Set()
    this.shards.set(shard, waiting)
    const run: Try = (stopped) => {
      if (!waiting.delete(run)) return
      if (waiting.size === 0 && this.shards.get(shard) === waiting) this.shards.delete(shard)
      this.count--
      cancel()
      again(stopped)
    }
    waiting.add(run)
    const cancel = this.later(delayMs, () => run(false))
    return true
  }

  /** This node has taken the shard. */
  taken(shard: number): void {
    for (const run of [...this.shards.get(shard) ?? []]) run(false)
  }

  stop(): void {
    this.stopped = true
    for (const waiting of [...this.shards.values()]) for (const run of [...waiting]) run(true)
  }
}
