/** Random numbers from a seed, so that a choice of faults is reproducible. */
import { createHash } from "node:crypto"

export class Random {
  readonly seed: string
  private count = 0

  constructor(seed: string) {
    this.seed = seed
  }

  /** A whole number from 0. */
  below(limit: number): number {
    const digest = createHash("sha256").update(`${this.seed} ${this.count++}`).digest()
    return digest.readUInt32BE(0) % limit
  }

  /** One of these; undefined for an empty list. */
  of<A>(all: ReadonlyArray<A>): A | undefined {
    return all.length === 0 ? undefined : all[this.below(all.length)]
  }

  /** An independent sequence for this name. */
  for(name: string): Random {
    return new Random(`${this.seed} ${name}`)
  }
}
