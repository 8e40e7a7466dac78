/**
 * Supervision: how long an actor that broke waits before it starts anew, and when it rests.
 * Backoff doubles from `restartDelayMs` to `restartDelayMaxMs`; `restartsMax` restarts within
 * `restartWindowMs` quarantine the actor for `quarantineMs`, or until it is lifted.
 */
import { type Address, fromKey, keyOf, Quarantined } from "../actor/index.ts"
import type { Limits } from "../limits.ts"

/** An actor that rests after it broke too often. */
export interface Quarantine {
  readonly address: Address
  readonly sinceMs: number
  /** When it ends by itself. */
  readonly untilMs: number
  /** Of its last defect: what broke and where, without anything that a message held. */
  readonly reason: string
}

interface Trouble {
  /** When the actor was restarted within the window, ms since the epoch. */
  restartsMs: Array<number>
  quarantinedUntilMs: number
  reason: string
}

export class Supervisor {
  private readonly troubles = new Map<string, Trouble>()
  private readonly limits: Limits
  private readonly nowMs: () => number

  constructor(limits: Limits, nowMs: () => number) {
    this.limits = limits
    this.nowMs = nowMs
  }

  /** Notes a restart: how long to wait before it, in ms; undefined: the actor rests. */
  restart(address: Address, reason: string): number | undefined {
    const nowMs = this.nowMs()
    const key = keyOf(address)
    const trouble = this.troubles.get(key) ??
      { restartsMs: [], quarantinedUntilMs: 0, reason }
    trouble.reason = reason
    const { restartDelayMaxMs, restartDelayMs, restartWindowMs, restartsMax } = this.limits
    // A clock that jumps back must not count what has not yet been.
    trouble.restartsMs = trouble.restartsMs.filter((atMs) =>
      atMs > nowMs - restartWindowMs && atMs <= nowMs
    )
    trouble.restartsMs.push(nowMs)
    this.troubles.set(key, trouble)
    if (trouble.restartsMs.length >= restartsMax) {
      trouble.quarantinedUntilMs = nowMs + this.limits.quarantineMs
      return
    }
    return Math.min(restartDelayMs * 2 ** (trouble.restartsMs.length - 1), restartDelayMaxMs)
  }

  /** The failure that callers of a resting actor get; undefined when it does not rest. */
  refusal(key: string): Quarantined | undefined {
    if (this.troubles.size === 0) return
    const trouble = this.troubles.get(key)
    if (trouble === undefined || trouble.quarantinedUntilMs === 0) return
    const leftMs = trouble.quarantinedUntilMs - this.nowMs()
    // More than the whole is left when the clock went back.
    if (leftMs <= 0 || leftMs > this.limits.quarantineMs) {
      this.troubles.delete(key)
      return
    }
    return new Quarantined({ key, retryAfterMs: Math.min(leftMs, this.limits.quarantineRetryMs) })
  }

  /** Ends a quarantine by hand; false when there was none. */
  lift(address: Address): boolean {
    const key = keyOf(address)
    const rested = this.refusal(key) !== undefined
    this.troubles.delete(key)
    return rested
  }

  /** Forgets troubles that are over. */
  sweep(): void {
    const nowMs = this.nowMs()
    const { restartWindowMs } = this.limits
    for (const [key, { quarantinedUntilMs, restartsMs }] of this.troubles) {
      const last = restartsMs.at(-1) ?? 0
      if (quarantinedUntilMs <= nowMs && last <= nowMs - restartWindowMs) this.troubles.delete(key)
    }
  }

  /** The actors that rest now. */
  quarantined(): ReadonlyArray<Quarantine> {
    const nowMs = this.nowMs()
    const rests: Array<Quarantine> = []
    for (const [key, { quarantinedUntilMs, reason }] of this.troubles) {
      if (quarantinedUntilMs <= nowMs) continue
      const sinceMs = quarantinedUntilMs - this.limits.quarantineMs
      rests.push({ address: fromKey(key), sinceMs, untilMs: quarantinedUntilMs, reason })
    }
    return rests
  }
}
