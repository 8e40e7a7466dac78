/** When what was deferred comes back: no faster than the node can bear, each origin on its own. */
import { deferredJitterMs } from "./limits.ts"

/** The last return that was given out to an origin. */
export interface Returns {
  lastMs: number
}

/** The returns of origins that have had no deferral before. */
export const noReturns = (): Returns => ({ lastMs: 0 })

const sweepMs = 1_000
const rateSpanMs = 250

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

  /**
   * The time of the next return in this line, not before `earliestMs`. An origin that is served
   * faster than its share has a `servedMs` of its own between two returns.
   */
  next(line: Returns, earliestMs: number, nowMs: number, servedMs?: number): number {
    if (nowMs - this.#sweptMs >= sweepMs || nowMs < this.#sweptMs) this.#sweep(nowMs)
    this.#lines.add(line)
    const stepMs = Math.min(this.#stepMs * this.#lines.size, servedMs ?? Number.POSITIVE_INFINITY)
    line.lastMs = Math.max(line.lastMs + stepMs, earliestMs)
    return Math.round(line.lastMs + this.#random() * deferredJitterMs)
  }

  #sweep(nowMs: number): void {
    this.#sweptMs = nowMs
    for (const line of this.#lines) if (line.lastMs <= nowMs) this.#lines.delete(line)
  }
}

/** How many attempts a lane has served in a second, as of the last span. */
export class ServiceRate {
  #sinceMs = 0
  #count = 0
  #perSecond = 0

  count(nowMs: number): void {
    this.#turn(nowMs)
    this.#count += 1
  }

  perSecond(nowMs: number): number {
    this.#turn(nowMs)
    return this.#perSecond
  }

  #turn(nowMs: number): void {
    const spanMs = nowMs - this.#sinceMs
    if (spanMs >= 0 && spanMs < rateSpanMs) return
    // After a pause nothing is known of it.
    this.#perSecond = spanMs < 0 || spanMs > 10 * rateSpanMs ? 0 : this.#count * 1_000 / spanMs
    this.#count = 0
    this.#sinceMs = nowMs
  }
}
