/**
 * When the service reads the timers of a shard from the store again. A durable commit adds its
 * timers to the window. But the store may keep a commit long after this node, or an earlier owner,
 * gave it up, and not every store reports that. The schedule counts sweeps, because clocks jump.
 */
import type { Limits } from "../limits.ts"

interface ScheduledRescan {
  /** Sweeps until the next rescan. */
  sweepsLeft: number
  /** How many of the next rescans look for late commits, at a shorter interval. */
  lateCommitRescansLeft: number
}

export class RescanSchedule {
  private readonly shards = new Map<number, ScheduledRescan>()
  private readonly regularSweeps: number
  private readonly lateCommitSweeps: number
  private readonly lateCommitRescans: number
  private sweepsDone = 0

  constructor(limits: Limits) {
    this.regularSweeps = Math.ceil(limits.timersRescanMs / limits.sweepMs)
    this.lateCommitSweeps = Math.ceil(limits.lateCommitRescanMs / limits.sweepMs)
    this.lateCommitRescans = limits.lateCommitRescans
  }

  /** This node has taken the shard. */
  begin(shard: number, expectsLateCommits: boolean): void {
    const interval = expectsLateCommits ? this.lateCommitSweeps : this.regularSweeps
    const lateCommitRescansLeft = expectsLateCommits ? this.lateCommitRescans : 0
    this.shards.set(shard, { sweepsLeft: this.sweepsUntil(shard, interval), lateCommitRescansLeft })
  }

  /** Sweeps until the turn of the shard, `interval` at most. Shards have different turns. */
  private sweepsUntil(shard: number, interval: number): number {
    return 1 + (shard + interval - this.sweepsDone % interval) % interval
  }

  end(shard: number): void {
    this.shards.delete(shard)
  }

  /** Rescans the shard soon, since the store may yet keep commits that a node gave up. */
  expectLateCommits(shard: number): void {
    const rescan = this.shards.get(shard)
    if (rescan === undefined) return
    rescan.lateCommitRescansLeft = this.lateCommitRescans
    rescan.sweepsLeft = Math.min(rescan.sweepsLeft, this.lateCommitSweeps)
  }

  /** The shards to rescan in this sweep. */
  sweep(): ReadonlyArray<number> {
    const due: Array<number> = []
    this.sweepsDone++
    for (const [shard, rescan] of this.shards) {
      if (--rescan.sweepsLeft > 0) continue
      due.push(shard)
      rescan.sweepsLeft = rescan.lateCommitRescansLeft > 0
        ? this.lateCommitSweeps
        : this.sweepsUntil(shard, this.regularSweeps)
      if (rescan.lateCommitRescansLeft > 0) rescan.lateCommitRescansLeft--
    }
    return due
  }
}
