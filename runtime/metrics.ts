/**
 * The metrics of the runtime: plain numbers, because the hot path updates them. The exporter reads
 * them from a snapshot.
 */
export interface KindMetrics {
  /** Decisions; `refusals` counts those that refused. */
  decisions: number
  refusals: number
  restarts: number
  quarantines: number
  /** Messages that were decided again, after a conflict or a failed write. */
  retriedDecisions: number
  activations: number
  passivations: number
}

/** A histogram with fixed upper bounds in ms; the last count is for all greater values. */
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

/** A histogram of counts with fixed upper bounds; the last count is for all greater values. */
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

/** Counts the value in its bucket: the first one whose bound is not below it. */
const tally = (
  bounds: ReadonlyArray<number>,
  counts: Array<number>,
  value: number
): void => {
  let at = 0
  while (at < bounds.length && value > (bounds[at] ?? 0)) at++
  counts[at] = (counts[at] ?? 0) + 1
}

/** Observations in {@link RecentValues}. */
const recentMax = 512

/** The last {@link recentMax} observations, for quantiles of the present load. */
export class RecentValues {
  private readonly values = new Float64Array(recentMax)
  private count = 0

  add(value: number): void {
    this.values[this.count++ % recentMax] = value
  }

  /** The quantile at `fraction`, 0 to 1; undefined without observations. */
  quantile(fraction: number): number | undefined {
    const size = Math.min(this.count, recentMax)
    const sorted = this.values.slice(0, size).sort()
    return sorted[Math.max(0, Math.ceil(fraction * size) - 1)]
  }
}

/** Counts one group, written or failed. */
export const observe = (metrics: CommitMetrics, commits: number, ms: number): void => {
  const { latency, recentMs, recentSizes, sizes } = metrics
  metrics.groups++
  metrics.commits += commits
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
    let metrics = this.kinds.get(kind)
    if (metrics === undefined) {
      metrics = {
        decisions: 0,
        refusals: 0,
        restarts: 0,
        quarantines: 0,
        retriedDecisions: 0,
        activations: 0,
        passivations: 0
      }
      this.kinds.set(kind, metrics)
    }
    return metrics
  }
}
