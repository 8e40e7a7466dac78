/**
 * What the runtime counts. Plain numbers, so that counting costs nothing on the hot path;
 * whoever exports them reads a snapshot.
 */
export interface KindMetrics {
  /** Decisions made, and those of them that refused. */
  decisions: number
  refusals: number
  restarts: number
  quarantines: number
  /** Conflicts and failed writes that made messages be decided again. */
  retriedDecisions: number
  activations: number
  passivations: number
}

/** A histogram with fixed upper bounds in ms; the last count is of all above. */
export interface LatencyMetric {
  readonly boundsMs: ReadonlyArray<number>
  readonly counts: Array<number>
  sumMs: number
  count: number
}

const latencyBoundsMs = [0.25, 0.5, 1, 2, 5, 10, 20, 50, 100, 250, 500, 1_000, 5_000]

const latency = (): LatencyMetric => ({
  boundsMs: latencyBoundsMs,
  counts: Array.from({ length: latencyBoundsMs.length + 1 }, () => 0),
  sumMs: 0,
  count: 0
})

/** A histogram of how many, with fixed upper bounds; the last count is of all above. */
export interface SizeMetric {
  readonly bounds: ReadonlyArray<number>
  readonly counts: Array<number>
  sum: number
  count: number
}

const sizeBounds = [1, 2, 5, 10, 20, 50, 100, 200, 500]

const sizes = (): SizeMetric => ({
  bounds: sizeBounds,
  counts: Array.from({ length: sizeBounds.length + 1 }, () => 0),
  sum: 0,
  count: 0
})

/** Counts one more under the first bound that is not below the value. */
const tally = (
  bounds: ReadonlyArray<number>,
  counts: Array<number>,
  value: number
): void => {
  let at = 0
  while (at < bounds.length && value > (bounds[at] ?? 0)) at++
  counts[at] = (counts[at] ?? 0) + 1
}

/** How many of the last observations are kept. */
const recentMax = 512

/** The last observations of something: how it stands now, whatever it was since the start. */
export class RecentValues {
  private readonly values = new Float64Array(recentMax)
  private seen = 0

  add(value: number): void {
    this.values[this.seen++ % recentMax] = value
  }

  /** What the `part` of them, 0 to 1, does not exceed; undefined when there is none. */
  quantile(part: number): number | undefined {
    const size = Math.min(this.seen, recentMax)
    const sorted = this.values.slice(0, size).sort()
    return sorted[Math.max(0, Math.ceil(part * size) - 1)]
  }
}

/** Adds one group that was written, or could not be. */
export const observe = (measures: CommitMetrics, commits: number, ms: number): void => {
  const { latency, recentMs, recentSizes, sizes } = measures
  measures.groups++
  measures.commits += commits
  tally(latency.boundsMs, latency.counts, ms)
  latency.sumMs += ms
  latency.count++
  tally(sizes.bounds, sizes.counts, commits)
  sizes.sum += commits
  sizes.count++
  recentMs.add(ms)
  recentSizes.add(commits)
}

export interface CommitMetrics {
  groups: number
  commits: number
  failures: number
  conflicts: number
  /** From the group's start until it is durable, or has failed. */
  readonly latency: LatencyMetric
  /** Commits of a group. */
  readonly sizes: SizeMetric
  readonly recentMs: RecentValues
  readonly recentSizes: RecentValues
}

export class RuntimeMetrics {
  readonly kinds = new Map<string, KindMetrics>()
  readonly commits: CommitMetrics = {
    groups: 0,
    commits: 0,
    failures: 0,
    conflicts: 0,
    latency: latency(),
    sizes: sizes(),
    recentMs: new RecentValues(),
    recentSizes: new RecentValues()
  }

  of(kind: string): KindMetrics {
    let found = this.kinds.get(kind)
    if (found === undefined) {
      found = {
        decisions: 0,
        refusals: 0,
        restarts: 0,
        quarantines: 0,
        retriedDecisions: 0,
        activations: 0,
        passivations: 0
      }
      this.kinds.set(kind, found)
    }
    return found
  }
}
