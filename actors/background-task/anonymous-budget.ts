/**
 * The requests that anonymous deposits may cause (protocol §7): from one client network to one
 * origin 10 in a minute and 100 in a day, at this node. Otherwise a stranger could make mailboxes
 * with eager fetches or receipts send requests to a victim.
 */
import { anonymousBudgetsMax, anonymousOriginsMax, anonymousPerDayMax,
  anonymousPerMinuteMax } from "../limits.ts"

const minuteMs = 60_000

const dayMs = 24 * 60 * minuteMs

/** A network has no space. */
const keyOf = (network: string, origin: string): string => `${network} ${origin}`

const networkOf = (key: string): string => key.slice(0, key.indexOf(" "))

export class AnonymousBudget {
  /**
   * When the requests of the last day were made, the oldest first, by network and origin. The pair
   * with the oldest last request is first.
   */
  private readonly made = new Map<string, ReadonlyArray<number>>()
  /** The number of pairs of each network. */
  private readonly origins = new Map<string, number>()

  /**
   * Takes one request; returns 0, or how long to wait before it may be made, in ms. `kept` requests
   * of the minute and of the day are left for others.
   */
  take(network: string, origin: string, nowMs: number, kept = 0): number {
    const key = keyOf(network, origin)
    const times = (this.made.get(key) ?? []).filter((at) => at > nowMs - dayMs)
    const waitMs = Math.max(
      0,
      (times.at(kept - anonymousPerMinuteMax) ?? -Infinity) + minuteMs - nowMs,
      (times.at(kept - anonymousPerDayMax) ?? -Infinity) + dayMs - nowMs,
      this.made.has(key) ? 0 : this.roomWaitMs(network, nowMs)
    )
    if (waitMs > 0) return waitMs
    if (!this.made.delete(key)) this.count(network, 1)
    this.made.set(key, [...times, nowMs])
    return 0
  }

  /**
   * How long a new pair waits for room, in ms. No pair with a request of the last day is forgotten:
   * a stranger with many origins could otherwise begin the count of a victim again. One network
   * alone does not take all the room.
   */
  private roomWaitMs(network: string, nowMs: number): number {
    this.forgetEnded(nowMs)
    const isOwn = (this.origins.get(network) ?? 0) >= anonymousOriginsMax
    if (!isOwn && this.made.size < anonymousBudgetsMax) return 0
    for (const [key, times] of this.made) {
      if (!isOwn || networkOf(key) === network) return (times.at(-1) ?? 0) + dayMs - nowMs
    }
    return 0
  }

  /** Forgets the pairs without a request of the last day. */
  private forgetEnded(nowMs: number): void {
    for (const [key, times] of this.made) {
      if ((times.at(-1) ?? -Infinity) + dayMs > nowMs) return
      this.made.delete(key)
      this.count(networkOf(key), -1)
    }
  }

  private count(network: string, change: number): void {
    const pairs = (this.origins.get(network) ?? 0) + change
    if (pairs === 0) this.origins.delete(network)
    else this.origins.set(network, pairs)
  }
}
