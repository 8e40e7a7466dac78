/** When what was deferred comes back: no faster than the node can bear, each origin on its own. */
import { deferredJitterMs } from "./limits.ts"

/** The last return that was given out to an origin. */
export interface Returns {
  lastMs: number
}

/** The returns of origins that have had no deferral before. */
export const noReturns = (): Returns => ({ lastMs: 0 })

const sweepMs = 1_000

/**
 * Gives each origin a line of returns. The lines share the node's rate, so that the longest of
 * them does not put off the others; the rate is kept on average, not to the millisecond.
 */
export class Pace {
  readonly #stepMs: number
  readonly #random: () => number
  /** Origins whose line reaches beyond now, as of the last sweep. */
  readonly #lines = new Set<Returns>()
  #sweptMs = 0

  constructor(perSecond: number, random: () => number) {
    this.#stepMs = 1_000 / perSecond
    this.#random = random
  }

  /** The time of the next return in this line, not before `earliestMs`. */
  next(line: Returns, earliestMs: number, nowMs: number): number {
    if (nowMs - this.#sweptMs >= sweepMs || nowMs < this.#sweptMs) this.#sweep(nowMs)
    this.#lines.add(line)
    const stepMs = this.#stepMs * this.#lines.size
    line.lastMs = Math.max(line.lastMs + stepMs, earliestMs)
    return Math.round(line.lastMs + this.#random() * deferredJitterMs)
  }

  #sweep(nowMs: number): void {
    this.#sweptMs = nowMs
    for (const line of this.#lines) if (line.lastMs <= nowMs) this.#lines.delete(line)
  }
}
