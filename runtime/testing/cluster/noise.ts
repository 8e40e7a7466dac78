/** Noise: how often each kind of small fault happens, until the faults cease. */
import type { Random } from "../time/index.ts"

/** Streams of the simulated store. */
export const streamCount = 3

/** The probability of each kind of noise in a cluster. */
export interface ClusterNoise {
  /** Messages between nodes. */
  readonly drops: number
  readonly delays: number
  readonly doubles: number
  readonly overtakes: number
  /** Commits: not stored; stored or not, without an answer; late or never, answered or not. */
  readonly commitFails: number
  readonly commitLost: number
  readonly commitHangs: number
  readonly readFails: number
  readonly readHangs: number
  readonly registryFaults: number
  /** Greatest additional delay of each call of the store, ms. */
  readonly slowMs: number
}

/** No noise. */
export const quiet: ClusterNoise = {
  drops: 0,
  delays: 0,
  doubles: 0,
  overtakes: 0,
  commitFails: 0,
  commitLost: 0,
  commitHangs: 0,
  readFails: 0,
  readHangs: 0,
  registryFaults: 0,
  slowMs: 0
}

/** A probability up to `most`; 0 half of the time, so that each kind is absent from many runs. */
export const upTo = (random: Random, most: number): number => random() < 0.5 ? 0 : random() * most

/** The noise of a seed. */
export const noiseOf = (random: Random): ClusterNoise => ({
  drops: upTo(random, 0.05),
  delays: upTo(random, 0.1),
  doubles: upTo(random, 0.03),
  overtakes: upTo(random, 0.5),
  commitFails: upTo(random, 0.05),
  commitLost: upTo(random, 0.04),
  commitHangs: upTo(random, 0.04),
  readFails: upTo(random, 0.05),
  readHangs: upTo(random, 0.02),
  registryFaults: upTo(random, 0.1),
  slowMs: upTo(random, 100)
})

/**
 * What becomes of one commit. `refused`: certainly not stored; `lost`: stored, without an answer;
 * `doubt`: stored or not, and the store says only that; `late`, `silent`: stored much later, with
 * or without an answer; `never`: not stored, without an answer.
 */
export type CommitFate = "kept" | "refused" | "lost" | "doubt" | "late" | "silent" | "never"

/** Draws the fate of the next commit. */
export const commitFateOf = (
  { commitFails, commitHangs, commitLost }: ClusterNoise,
  random: Random
): CommitFate => {
  let lot = random()
  if ((lot -= commitFails) < 0) return "refused"
  if ((lot -= commitLost) < 0) return random() < 0.5 ? "lost" : "doubt"
  if ((lot -= commitHangs) >= 0) return "kept"
  const kind = random()
  return kind < 0.4 ? "late" : kind < 0.8 ? "silent" : "never"
}
