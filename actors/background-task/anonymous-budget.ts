/**
 * The requests that anonymous deposits may cause (protocol §7): from one client network to one
 * origin 10 in a minute and 100 in a day, at this node. Otherwise a stranger could make mailboxes
 * with eager fetches or receipts send requests to a victim.
 *
 * Where a network has no room for another origin, its further origins share one such budget. So no
 * stranger ends the requests of others, and a victim gets twice the budget of a network at most: as
 * an origin of its own, and as one of those that share.
 */
import { createHmac, randomBytes } from "node:crypto"
import { anonymousBudgetsMax, anonymousOriginsMax, anonymousPerDayMax, anonymousPerMinuteMax,
  anonymousSharedBudgetsMax } from "../limits.ts"

const minuteMs = 60_000

const dayMs = 24 * 60 * minuteMs

/** A network has no space. */
const keyOf = (network: string, origin: string): string => `${network} ${origin}`

const networkOf = (key: string): string => key.slice(0, key.indexOf(" "))

/** When requests were made, the oldest first. */
type RequestTimes = ReadonlyArray<number>

const ofLastDay = (times: RequestTimes, nowMs: number): RequestTimes =>
  times.filter((at) => at > nowMs - dayMs)

/** How long the next request waits for its budget, in ms. */
const budgetWaitMs = (times: RequestTimes, nowMs: number, kept: number): number =>
  Math.max(
    0,
    (times.at(kept - anonymousPerMinuteMax) ?? -Infinity) + minuteMs - nowMs,
    (times.at(kept - anonymousPerDayMax) ?? -Infinity) + dayMs - nowMs
  )

/** Pairs of network and origin: of all networks, and of one. */
interface PairLimits {
  readonly pairsMax: number
  readonly originsMax: number
}

const pairLimits: PairLimits = { pairsMax: anonymousBudgetsMax, originsMax: anonymousOriginsMax }

/**
 * Assigns networks to a bounded number of shared budgets. A random key decides which networks share
 * one, so no stranger can choose a network that shares the budget of another.
 */
export const sharedBudgetSlots = (): (network: string) => number => {
  const key = randomBytes(32)
  return (network) =>
    createHmac("sha256", key).update(network).digest().readUInt32BE() % anonymousSharedBudgetsMax
}

/** The budget of the networks of a slot, for their origins without one. */
interface SharedBudget {
  readonly times: RequestTimes
  /** Until then forgotten pairs may have made a request: the networks get no new pair. */
  readonly closedUntilMs: number
}

const unused: SharedBudget = { times: [], closedUntilMs: -Infinity }

export class AnonymousBudget {
  private readonly limits: PairLimits
  private readonly slotOf: (network: string) => number
  /**
   * When the requests of the last day were made, by network and origin. The pair with the oldest
   * last request is first.
   */
  private readonly made = new Map<string, RequestTimes>()
  /** The number of pairs of each network. */
  private readonly origins = new Map<string, number>()
  /** By slot; the one that was changed first is first. */
  private readonly shared = new Map<number, SharedBudget>()

  constructor(limits = pairLimits, slotOf = sharedBudgetSlots()) {
    this.limits = limits
    this.slotOf = slotOf
  }

  /** The room in use, in pairs. */
  get size(): number {
    return this.made.size
  }

  /**
   * Takes one request; returns 0, or how long to wait before it may be made, in ms. `kept` requests
   * of the minute and of the day are left for others.
   */
  take(network: string, origin: string, nowMs: number, kept = 0): number {
    const key = keyOf(network, origin)
    const known = this.made.get(key)
    if (known === undefined && !this.hasRoom(network, nowMs)) {
      return this.takeShared(network, nowMs, kept)
    }
    const times = ofLastDay(known ?? [], nowMs)
    const waitMs = budgetWaitMs(times, nowMs, kept)
    if (waitMs > 0) return waitMs
    if (!this.made.delete(key)) this.count(network, 1)
    this.made.set(key, [...times, nowMs])
    return 0
  }

  private takeShared(network: string, nowMs: number, kept: number): number {
    const shared = this.sharedOf(network)
    const times = ofLastDay(shared.times, nowMs)
    const waitMs = budgetWaitMs(times, nowMs, kept)
    if (waitMs > 0) return Math.min(waitMs, this.roomWaitMs(network, nowMs))
    this.share(network, { ...shared, times: [...times, nowMs] })
    return 0
  }

  /**
   * Whether a new pair of the network has room. Networks share the room: what one with many pairs
   * has is reclaimed for one with fewer.
   */
  private hasRoom(network: string, nowMs: number): boolean {
    this.forgetEnded(nowMs)
    if (this.sharedOf(network).closedUntilMs > nowMs || this.isFull(network)) return false
    return this.size < this.limits.pairsMax || this.reclaim(network)
  }

  /** How long a new pair that has no room waits for it at least, in ms. */
  private roomWaitMs(network: string, nowMs: number): number {
    const { closedUntilMs } = this.sharedOf(network)
    if (closedUntilMs > nowMs) return closedUntilMs - nowMs
    const isOwn = this.isFull(network)
    for (const [key, times] of this.made) {
      if (!isOwn || networkOf(key) === network) return (times.at(-1) ?? 0) + dayMs - nowMs
    }
    return Infinity
  }

  private isFull(network: string): boolean {
    return (this.origins.get(network) ?? 0) >= this.limits.originsMax
  }

  /**
   * Makes room for a pair of the network, if another one has at least two pairs more. Half of the
   * pairs of the network with the most are forgotten, those with the oldest requests. A stranger
   * with many origins could so begin the count of each victim again: it is closed until they end.
   */
  private reclaim(network: string): boolean {
    const pairsOf = (one: string): number => this.origins.get(one) ?? 0
    let largest = network
    for (const one of this.origins.keys()) if (pairsOf(one) > pairsOf(largest)) largest = one
    if (pairsOf(largest) < pairsOf(network) + 2) return false
    let left = Math.ceil(pairsOf(largest) / 2)
    const shared = this.sharedOf(largest)
    let { closedUntilMs } = shared
    for (const [key, made] of this.made) {
      if (left === 0) break
      if (networkOf(key) !== largest) continue
      left -= 1
      this.made.delete(key)
      this.count(largest, -1)
      closedUntilMs = Math.max(closedUntilMs, (made.at(-1) ?? 0) + dayMs)
    }
    this.share(largest, { ...shared, closedUntilMs })
    return true
  }

  /** Forgets the pairs without a request of the last day, and what is shared no more. */
  private forgetEnded(nowMs: number): void {
    for (const [slot, { closedUntilMs, times }] of this.shared) {
      if (Math.max(closedUntilMs, (times.at(-1) ?? -Infinity) + dayMs) > nowMs) break
      this.shared.delete(slot)
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

  private sharedOf(network: string): SharedBudget {
    return this.shared.get(this.slotOf(network)) ?? unused
  }

  private share(network: string, shared: SharedBudget): void {
    const slot = this.slotOf(network)
    this.shared.delete(slot)
    this.shared.set(slot, shared)
  }
}
