/**
 * The requests that anonymous deposits may cause (protocol §7): from one client network to one
 * origin 10 in a minute and 100 in a day, at this node. Otherwise a stranger could make mailboxes
 * with eager fetches or receipts send requests to a victim.
 */
import { anonymousBudgetsMax, anonymousPerDayMax, anonymousPerMinuteMax } from "../limits.ts"

const minuteMs = 60_000

const dayMs = 24 * 60 * minuteMs

export class AnonymousBudget {
  /**
   * When the requests of the last day were made, the oldest first, by network and origin. The pair
   * with the oldest last request is first.
   */
  private readonly made = new Map<string, ReadonlyArray<number>>()

  /** Takes one request; returns 0, or how long to wait before it may be made, in ms. */
  take(network: string, origin: string, nowMs: number): number {
    const key = `${network} ${origin}`
    const times = (this.made.get(key) ?? []).filter((at) => at > nowMs - dayMs)
    const waitMs = Math.max(
      0,
      (times.at(-anonymousPerMinuteMax) ?? -Infinity) + minuteMs - nowMs,
      (times.at(-anonymousPerDayMax) ?? -Infinity) + dayMs - nowMs,
      this.made.has(key) ? 0 : this.roomWaitMs(nowMs)
    )
    if (waitMs > 0) return waitMs
    this.made.delete(key)
    this.made.set(key, [...times, nowMs])
    return 0
  }

  /**
   * How long a new pair waits for room, in ms. No pair with a request of the last day is forgotten:
   * a stranger with many origins could otherwise begin the count of a victim again.
   */
  private roomWaitMs(nowMs: number): number {
    for (const [key, times] of this.made) {
      const endsMs = (times.at(-1) ?? -Infinity) + dayMs
      if (endsMs > nowMs) return this.made.size < anonymousBudgetsMax ? 0 : endsMs - nowMs
      this.made.delete(key)
    }
    return 0
  }
}
