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
export class RetryPacing {
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
  #sinceMs: number
  #count = 0
  #perSecond: number | undefined

  constructor(nowMs: number) {
    this.#sinceMs = nowMs
  }

  count(nowMs: number): void {
    this.#turn(nowMs)
    this.#count += 1
  }

  /** 0 until one was served; undefined while it is not known how many. */
  perSecond(nowMs: number): number | undefined {
    this.#turn(nowMs)
    return this.#perSecond ?? (this.#count === 0 ? 0 : undefined)
  }

  #turn(nowMs: number): void {
    const spanMs = nowMs - this.#sinceMs
    if (spanMs >= 0 && spanMs < rateSpanMs) return
    this.#perSecond = spanMs < 0 ? undefined : this.#count * 1_000 / spanMs
    this.#count = 0
    this.#sinceMs = nowMs
  }
}
