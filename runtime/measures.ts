/**
 * What the runtime counts. Plain numbers, so that counting costs nothing on the hot path;
 * whoever exports them reads a snapshot.
 */
import type { Address } from "./address.ts"

export interface KindMeasures {
  /** Decisions made, and those of them that refused. */
  decisions: number
  refusals: number
  restarts: number
  quarantines: number
  /** Conflicts and failed writes that made messages be decided anew. */
  redecisions: number
  activations: number
  passivations: number
}

/** A histogram with fixed upper bounds in ms; the last count is of all above. */
export interface LatencyMeasure {
  readonly boundsMs: ReadonlyArray<number>
  readonly counts: Array<number>
  sumMs: number
  count: number
}

const latencyBoundsMs = [0.25, 0.5, 1, 2, 5, 10, 20, 50, 100, 250, 500, 1_000, 5_000]

const latency = (): LatencyMeasure => ({
  boundsMs: latencyBoundsMs,
  counts: Array.from({ length: latencyBoundsMs.length + 1 }, () => 0),
  sumMs: 0,
  count: 0
})

/** Adds one observation. */
export const observe = (measure: LatencyMeasure, ms: number): void => {
  let at = 0
  while (at < measure.boundsMs.length && ms > (measure.boundsMs[at] ?? 0)) at++
  measure.counts[at] = (measure.counts[at] ?? 0) + 1
  measure.sumMs += ms
  measure.count++
}

export interface CommitMeasures {
  groups: number
  commits: number
  failures: number
  conflicts: number
  readonly latency: LatencyMeasure
}

export class Measures {
  readonly kinds = new Map<string, KindMeasures>()
  readonly commits: CommitMeasures = {
    groups: 0,
    commits: 0,
    failures: 0,
    conflicts: 0,
    latency: latency()
  }

  of(kind: string): KindMeasures {
    let found = this.kinds.get(kind)
    if (found === undefined) {
      found = {
        decisions: 0,
        refusals: 0,
        restarts: 0,
        quarantines: 0,
        redecisions: 0,
        activations: 0,
        passivations: 0
      }
      this.kinds.set(kind, found)
    }
    return found
  }
}

/** What one node holds just now. */
export interface Snapshot {
  readonly resident: ReadonlyMap<string, { readonly active: number; readonly queued: number }>
  /** Wake-ups known in memory: of each shard those that come first; the store may have more. */
  readonly wakeUps: number
  readonly earliestWakeUpMs: number | undefined
  readonly quarantined: ReadonlyArray<Address>
  readonly measures: Measures
}
