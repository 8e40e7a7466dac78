/**
 * Supervision: how long a broken actor waits before it restarts, and when it is quarantined.
 * Backoff doubles from `restartDelayMs` to `restartDelayMaxMs`; `restartsMax` restarts within
 * `restartWindowMs` quarantine the actor for `quarantineMs`, or until it is lifted.
 */
import { Cause } from "effect"
import { type Address, fromKey, keyOf, Quarantined } from "../actor/index.ts"
import type { Clocks } from "../clock.ts"
import type { Limits } from "../limits.ts"

/** A quarantined actor: it broke too often. */
export interface Quarantine {
  readonly address: Address
  readonly sinceMs: number
  /** When it ends by itself. */
  readonly untilMs: number
  /** Its last defect: what broke and where, without any content of a message. */
  readonly reason: string
}

/** What is wrong with an actor; times are ms since the epoch. */
export interface TroubleView {
  /** How often it was restarted within `limits.restartWindowMs`. */
  readonly restarts: number
  /**
   * What broke last: also after the window and a quarantine. Left out if the node, since its start,
   * has seen no fault of the actor, or `limits.lastFaultsMax` later ones of others.
   */
  readonly fault?: string
  /** When that was. An older node does not report it. */
  readonly faultAtMs?: number
  readonly quarantine?: Pick<Quarantine, "sinceMs" | "untilMs">
}

/** A defect that has restarted an actor: what broke and where, without content of a message. */
interface Fault {
  readonly reason: string
  /** Time of day, for people. */
  readonly atMs: number
}

interface Trouble {
  /** When the actor was restarted within the window, by the monotonic clock. */
  restartsMs: Array<number>
  /** End of the quarantine by the monotonic clock; 0 without one. */
  quarantinedUntilMs: number
  /** The begin as time of day, for people; it does not change while the quarantine lasts. */
  quarantinedAtMs: number
  reason: string
}

/** Greatest number of characters of an error's name in a reason. */
const nameCharsMax = 80

const framePattern = /^\s+at .*?((?:[\w-]+\/)?[\w.-]+\.[jt]s:\d+)/m

/**
 * The error's name and place, such as `TypeError at mailbox/decide.js:40`. It omits the error's
 * message, which may contain a secret; the log has the message, redacted.
 */
export const reasonOf = (cause: unknown): string => {
  const error = Cause.isCause(cause) ? Cause.squash(cause) : cause
  if (!(error instanceof Error)) return "the cause is not an Error"
  const name = error.name.replace(/[^\w.$/ -]/g, "").slice(0, nameCharsMax)
  const place = framePattern.exec(error.stack?.replace(error.message, "") ?? "")?.[1]
  return place === undefined ? name : `${name} at ${place}`
}

export class Supervisor {
  private readonly troubles = new Map<string, Trouble>()
  /** By the actors' keys, the latest last. */
  private readonly faults = new Map<string, Fault>()
  private readonly limits: Limits
  private readonly clocks: Clocks

  constructor(limits: Limits, clocks: Clocks) {
    this.limits = limits
    this.clocks = clocks
  }

  /**
   * Counts a restart after a defect. Returns how long to wait before it, in ms; undefined if the
   * actor is quarantined instead.
   */
  restart(address: Address, cause: unknown): number | undefined {
    const nowMs = this.clocks.monotonicMs()
    const key = keyOf(address)
    const reason = reasonOf(cause)
    this.remember(key, { reason, atMs: this.clocks.nowMs() })
    const trouble = this.troubles.get(key) ??
      { restartsMs: [], quarantinedUntilMs: 0, quarantinedAtMs: 0, reason }
    trouble.reason = reason
    const { restartDelayMaxMs, restartDelayMs, restartWindowMs, restartsMax } = this.limits
    trouble.restartsMs = trouble.restartsMs.filter((atMs) => atMs > nowMs - restartWindowMs)
    trouble.restartsMs.push(nowMs)
    this.troubles.set(key, trouble)
    if (trouble.restartsMs.length >= restartsMax) {
      trouble.quarantinedUntilMs = nowMs + this.limits.quarantineMs
      trouble.quarantinedAtMs = this.clocks.nowMs()
      return
    }
    return Math.min(restartDelayMs * 2 ** (trouble.restartsMs.length - 1), restartDelayMaxMs)
  }

  /** The failure for callers of a quarantined actor; undefined when it is not quarantined. */
  refusal(key: string): Quarantined | undefined {
    if (this.troubles.size === 0) return
    const trouble = this.troubles.get(key)
    if (trouble === undefined || trouble.quarantinedUntilMs === 0) return
    const leftMs = trouble.quarantinedUntilMs - this.clocks.monotonicMs()
    if (leftMs <= 0) {
      this.troubles.delete(key)
      return
    }
    return new Quarantined({ key, retryAfterMs: Math.min(leftMs, this.limits.quarantineRetryMs) })
  }

  /** Ends a quarantine by hand; false when there was none. */
  lift(address: Address): boolean {
    const key = keyOf(address)
    const wasQuarantined = this.refusal(key) !== undefined
    this.troubles.delete(key)
    return wasQuarantined
  }

  /** The trouble of an actor, for people. */
  troubleOf(key: string): TroubleView {
    const trouble = this.troubles.get(key)
    const fault = this.faults.get(key)
    const seen = fault === undefined ? {} : { fault: fault.reason, faultAtMs: fault.atMs }
    if (trouble === undefined) return { restarts: 0, ...seen }
    const fromMs = this.clocks.monotonicMs() - this.limits.restartWindowMs
    const restarts = trouble.restartsMs.filter((atMs) => atMs > fromMs).length
    const view = { restarts, ...seen }
    const quarantine = this.quarantined().find(({ address }) => keyOf(address) === key)
    if (quarantine === undefined) return view
    const { sinceMs, untilMs } = quarantine
    return { ...view, quarantine: { sinceMs, untilMs } }
  }

  private remember(key: string, fault: Fault): void {
    this.faults.delete(key)
    this.faults.set(key, fault)
    if (this.faults.size <= this.limits.lastFaultsMax) return
    const [oldest = key] = this.faults.keys()
    this.faults.delete(oldest)
  }

  /** Forgets troubles that are over; the last fault of each actor stays. */
  sweep(): void {
    const nowMs = this.clocks.monotonicMs()
    const { restartWindowMs } = this.limits
    for (const [key, { quarantinedUntilMs, restartsMs }] of this.troubles) {
      const last = restartsMs.at(-1) ?? 0
      if (quarantinedUntilMs <= nowMs && last <= nowMs - restartWindowMs) this.troubles.delete(key)
    }
  }

  /** The quarantined actors. */
  quarantined(): ReadonlyArray<Quarantine> {
    const nowMs = this.clocks.monotonicMs()
    const quarantines: Array<Quarantine> = []
    for (const [key, { quarantinedAtMs, quarantinedUntilMs, reason }] of this.troubles) {
      if (quarantinedUntilMs <= nowMs) continue
      const untilMs = quarantinedAtMs + this.limits.quarantineMs
      quarantines.push({ address: fromKey(key), sinceMs: quarantinedAtMs, untilMs, reason })
    }
    return quarantines
  }
}
