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

/** Pairs of network and origin: of all networks, and of one. */
interface PairLimits {
  readonly pairsMax: number
  readonly originsMax: number
}

const pairLimits: PairLimits = { pairsMax: anonymousBudgetsMax, originsMax: anonymousOriginsMax }

export class AnonymousBudget {
  private readonly limits: PairLimits
  /**
   * When the requests of the last day were made, the oldest first, by network and origin. The pair
   * with the oldest last request is first.
   */
  private readonly made = new Map<string, ReadonlyArray<number>>()
  /** The number of pairs of each network. */
  private readonly origins = new Map<string, number>()
  /**
   * Networks with forgotten pairs, and until when such a pair may have made a request. Until then
   * no origin but the remembered ones gets a request of the network. Each takes the room of a pair.
   */
  private readonly closed = new Map<string, number>()

  constructor(limits = pairLimits) {
    this.limits = limits
  }

  /** The room in use, in pairs. */
  get size(): number {
    return this.made.size + this.closed.size
  }

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
   * How long a new pair waits for room, in ms. Networks share the room: what one with many pairs
   * has is reclaimed for one with fewer.
   */
  private roomWaitMs(network: string, nowMs: number): number {
    this.forgetEnded(nowMs)
    const untilMs = this.closed.get(network)
    if (untilMs !== undefined) return untilMs - nowMs
    const isOwn = (this.origins.get(network) ?? 0) >= this.limits.originsMax
    if (!isOwn && (this.size < this.limits.pairsMax || this.reclaim(network))) return 0
    for (const [key, times] of this.made) {
      if (!isOwn || networkOf(key) === network) return (times.at(-1) ?? 0) + dayMs - nowMs
    }
    return 0
  }

  /**
   * Makes room for a pair of the network, if another one has at least two pairs more. Half of the
   * pairs of the network with the most are forgotten, those with the oldest requests. A stranger
   * with many origins could so begin the count of a victim again: it is closed until they end.
   */
  private reclaim(network: string): boolean {
    const roomOf = (one: string): number =>
      (this.origins.get(one) ?? 0) + (this.closed.has(one) ? 1 : 0)
    let largest = network
    for (const one of this.origins.keys()) if (roomOf(one) > roomOf(largest)) largest = one
    if (roomOf(largest) < roomOf(network) + 2) return false
    // The closed network takes the room of one of them.
    const forgottenMin = this.closed.has(largest) ? 1 : 2
    let left = Math.max(forgottenMin, Math.ceil((this.origins.get(largest) ?? 0) / 2))
    for (const [key, times] of this.made) {
      if (left === 0) break
      if (networkOf(key) !== largest) continue
      left -= 1
      this.made.delete(key)
      this.count(largest, -1)
      const endMs = (times.at(-1) ?? 0) + dayMs
      this.closed.set(largest, Math.max(this.closed.get(largest) ?? 0, endMs))
    }
    return true
  }

  /** Forgets the pairs without a request of the last day, and opens the networks that had them. */
  private forgetEnded(nowMs: number): void {
    for (const [network, untilMs] of this.closed) {
      if (untilMs <= nowMs) this.closed.delete(network)
    }
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
