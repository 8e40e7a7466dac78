/**
 * When the store is looked at once more for the wake-ups of a shard. What a commit has set is known
 * here when it is kept; but a commit that was given up, here or by an owner before, may be kept
 * long after, and nobody is told. Counted in sweeps, since clocks jump.
 */
import type { Limits } from "./limits.ts"

interface Look {
  sweepsLeft: number
  /** So many of the next ones are soon, since a commit is in doubt. */
  hasty: number
}

export class RescanSchedule {
  private readonly shards = new Map<number, Look>()
  private readonly regular: number
  private readonly soon: number
  private readonly hasty: number

  constructor({ sweepMs, wakesDoubtLookMs, wakesDoubtLooks, wakesLookMs }: Limits) {
    this.regular = Math.ceil(wakesLookMs / sweepMs)
    this.soon = Math.ceil(wakesDoubtLookMs / sweepMs)
    this.hasty = wakesDoubtLooks
  }

  /** A shard is held from now on. */
  begin(shard: number, inDoubt: boolean): void {
    // Not all of them at once.
    const sweepsLeft = 1 + shard % this.regular
    this.shards.set(shard, { sweepsLeft, hasty: 0 })
    if (inDoubt) this.doubt(shard)
  }

  end(shard: number): void {
    this.shards.delete(shard)
  }

  /** A commit that set wake-ups was given up, and may be kept. */
  doubt(shard: number): void {
    const look = this.shards.get(shard)
    if (look === undefined) return
    look.hasty = this.hasty
    look.sweepsLeft = Math.min(look.sweepsLeft, this.soon)
  }

  /** The shards whose time has come. */
  sweep(): ReadonlyArray<number> {
    const due: Array<number> = []
    for (const [shard, look] of this.shards) {
      if (--look.sweepsLeft > 0) continue
      due.push(shard)
      look.sweepsLeft = look.hasty > 0 ? this.soon : this.regular
      if (look.hasty > 0) look.hasty--
    }
    return due
  }
}
