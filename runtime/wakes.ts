/** What an activation knows of wake-ups: its own, and those that it sets for others. */
import { type Address, keyOf } from "./address.ts"
import type { AnyDecision } from "./cell.ts"
import type { Due, PendingCommit } from "./pending.ts"
import type { Surroundings } from "./surroundings.ts"

export class ActorWakes {
  private readonly address: Address
  private readonly around: Surroundings
  /** What this activation decided on last; undefined: whatever the store has. */
  private ownMs: number | null | undefined = undefined

  constructor(address: Address, around: Surroundings) {
    this.address = address
    this.around = around
  }

  /** Whether the wake-up that fired is over: unless its decision, or one before, set another. */
  isOver({ foreign }: Due, decision: AnyDecision, nowMs: number): boolean {
    if (foreign !== undefined) this.around.foreign.met(foreign)
    return decision.wakeAtMs === undefined && !decision.vanishes &&
      !(typeof this.ownMs === "number" && this.ownMs > nowMs)
  }

  /** Takes a decision's wake-ups into its commit. */
  decide(commit: PendingCommit, decision: AnyDecision, clears: boolean): void {
    if (clears) commit.wakeAtMs = null
    if (commit.wakeAtMs !== undefined) this.ownMs = commit.wakeAtMs
    if (decision.othersWake === undefined) return
    for (const wake of decision.othersWake) commit.wakeOther(this.around.foreign.note(wake))
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
    if (own !== undefined) timers.set(this.address, own)
    for (const other of commit.otherWakes) {
      foreign.ripen(other)
      timers.set(other.address, other.atMs)
    }
  }

  /** Whether or not a lost commit was kept, its wake-ups may come: one too many does no harm. */
  armLost(commit: PendingCommit): void {
    const { foreign, timers } = this.around
    if (typeof commit.wakeAtMs === "number") timers.setNoLater(this.address, commit.wakeAtMs)
    for (const other of commit.otherWakes) {
      foreign.ripen(other)
      timers.setNoLater(other.address, other.atMs)
    }
  }

  /** The state comes from the store again. */
  forget(): void {
    this.ownMs = undefined
  }
}
