/**
 * The requests that anonymous deposits may cause (protocol §7): from one client network to one
 * origin 10 in a minute and 100 in a day, at this node. Otherwise a stranger could make mailboxes
 * with eager fetches or receipts send requests to a victim.
 */
import { LRUCache } from "lru-cache"
import { anonymousBudgetsMax, anonymousPerDayMax, anonymousPerMinuteMax } from "../limits.ts"

const minuteMs = 60_000

const dayMs = 24 * 60 * minuteMs

export class AnonymousBudget {
  /**
   * When the requests of the last day were made, the oldest first, by network and origin. Made with
   * the first request: the memory of an empty cache is that of a full one.
   */
  private made: LRUCache<string, ReadonlyArray<number>> | undefined

  /** Takes one request; returns 0, or how long to wait before it may be made, in ms. */
  take(network: string, origin: string, nowMs: number): number {
    this.made ??= new LRUCache({ max: anonymousBudgetsMax })
    const key = `${network} ${origin}`
    const times = (this.made.get(key) ?? []).filter((at) => at > nowMs - dayMs)
    const waitMs = Math.max(
      0,
      (times.at(-anonymousPerMinuteMax) ?? -Infinity) + minuteMs - nowMs,
      (times.at(-anonymousPerDayMax) ?? -Infinity) + dayMs - nowMs
    )
    if (waitMs === 0) times.push(nowMs)
    this.made.set(key, times)
    return waitMs
  }
}
