/** What an activation knows of wake-ups: its own, and those that it sets for others. */
import { type Address, keyOf, shardOf } from "./address.ts"
import type { AnyDecision } from "./cell.ts"
import type { FiredTimer, PendingCommit } from "./pending.ts"
import type { ActivationContext } from "./surroundings.ts"

export class ActorTimers {
  private readonly address: Address
  private readonly around: ActivationContext
  /** What this activation decided on last, a hold too; undefined: whatever the store has. */
  private ownMs: number | null | undefined = undefined

  constructor(address: Address, around: ActivationContext) {
    this.address = address
    this.around = around
  }

  /**
   * Whether the wake-up that fired is over: unless its decision, or one before, set another or
   * held it.
   */
  isOver({ foreign }: FiredTimer, decision: AnyDecision, nowMs: number): boolean {
    if (foreign !== undefined) this.around.foreign.met(foreign)
    const { holdUntilMs, vanishes, wakeAtMs } = decision
    if (wakeAtMs !== undefined || holdUntilMs !== undefined || vanishes) return false
    if (typeof this.ownMs !== "number" || this.ownMs <= nowMs) return true
    // Another actor's wake-up may have taken its place.
    this.around.timers.setNoLater(this.address, this.ownMs)
    return false
  }

  /** Takes a decision's wake-ups into its commit. */
  decide(commit: PendingCommit, decision: AnyDecision, clears: boolean): void {
    if (clears) {
      commit.wakeAtMs = null
      commit.holdUntilMs = undefined
    }
    const own = decision.holdUntilMs ?? (clears ? null : decision.wakeAtMs)
    if (own !== undefined) this.ownMs = own
    if (decision.othersWake === undefined) return
    for (const wake of decision.othersWake) commit.wakeOther(this.around.foreign.note(wake))
  }

  /** Takes the hold of a decision that writes nothing: it waits for the commit it has seen. */
  hold({ holdUntilMs }: AnyDecision, seen: PendingCommit | undefined): void {
    if (holdUntilMs === undefined) return
    this.ownMs = holdUntilMs
    if (seen === undefined) this.armHold(holdUntilMs)
    else seen.holdUntilMs = holdUntilMs
  }

  /**
   * The wake-up to write. Another actor's, that this one has not yet seen, is neither taken away
   * nor put off; it is armed by the commit of the one that set it.
   */
  toWrite(commit: PendingCommit): number | null | undefined {
    const own = commit.wakeAtMs
    if (own === undefined) return
    const standing = this.around.foreign.standing(keyOf(this.address))
    if (standing === undefined || (own !== null && own <= standing)) return own
    commit.wakeAtMs = undefined
    return standing
  }

  /** The commit is durable. */
  arm(commit: PendingCommit): void {
    const { foreign, timers } = this.around
    const own = commit.vanishes ? null : commit.wakeAtMs
    // What is held comes at no other time, whatever is stored.
    if (commit.holdUntilMs !== undefined && !commit.vanishes) this.armHold(commit.holdUntilMs)
    else if (own !== undefined) timers.set(this.address, this.afterForeign(own))
    for (const other of commit.otherWakes) {
      foreign.ripen(other)
      timers.setForeign(other.address, other.atMs)
    }
  }

  /**
   * Whether or not a lost commit was kept, its wake-ups may come: one too many does no harm.
   * What it was to hold is not held. `unsure`: it may be kept yet, when these have come already.
   */
  armLost(commit: PendingCommit, unsure: boolean): void {
    const { foreign, timers } = this.around
    const setsSome = typeof commit.wakeAtMs === "number" || commit.otherWakes.length > 0
    if (unsure && setsSome) timers.doubt(shardOf(this.address))
    if (typeof commit.wakeAtMs === "number") timers.setNoLater(this.address, commit.wakeAtMs)
    for (const other of commit.otherWakes) {
      foreign.doubt(other)
      timers.setNoLater(other.address, other.atMs)
    }
  }

  /** The state comes from the store again. */
  forget(): void {
    this.ownMs = undefined
  }

  /**
   * The wake-up to come, of this actor's own and another's that is durable and not yet decided on:
   * the later commit of that one may have been answered before this one.
   */
  private afterForeign(ownMs: number | null): number | null {
    const ripeMs = this.around.foreign.ripeMs(keyOf(this.address))
    return ripeMs === undefined ? ownMs : Math.min(ripeMs, ownMs ?? ripeMs)
  }

  /**
   * Another actor's wake-up that this one has not seen is not put off, when it is durable. One that
   * is not yet comes with its commit: to come before would be to come again and again.
   */
  private armHold(untilMs: number): void {
    const ripeMs = this.around.foreign.ripeMs(keyOf(this.address)) ?? untilMs
    this.around.timers.hold(this.address, Math.min(ripeMs, untilMs))
  }
}
