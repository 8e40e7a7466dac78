/**
 * The metrics of the runtime: plain numbers, because the hot path updates them. The exporter reads
 * them from a snapshot.
 */
export class KindMetrics {
  /** Decisions; `refusals` counts those that refused. */
  decisions = 0
  refusals = 0
  restarts = 0
  quarantines = 0
  /** Messages that were decided again, after a conflict or a failed write. */
  retriedDecisions = 0
  activations = 0
  passivations = 0
}

/** A histogram with fixed upper bounds; the last count is for all greater values. */
export class Histogram {
  readonly bounds: ReadonlyArray<number>
  readonly counts: Array<number>
  sum = 0
  count = 0

  constructor(bounds: ReadonlyArray<number>) {
    this.bounds = bounds
    this.counts = Array.from({ length: bounds.length + 1 }, () => 0)
  }

  /** Counts the value in its bucket: the first one whose bound is not below it. */
  observe(value: number): void {
    const { bounds, counts } = this
    let at = 0
    while (at < bounds.length && value > (bounds[at] ?? 0)) at++
    counts[at] = (counts[at] ?? 0) + 1
    this.sum += value
    this.count++
  }
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

/** The commits of a node: how many, how long they took, and in groups of which size. */
export class CommitMetrics {
  commits = 0
  failures = 0
  conflicts = 0
  /** ms from the start of a group until it is durable, or has failed; its count is the groups. */
  readonly latencyMs = new Histogram([0.25, 0.5, 1, 2, 5, 10, 20, 50, 100, 250, 500, 1_000, 5_000])
  /** Commits of a group. */
  readonly sizes = new Histogram([1, 2, 5, 10, 20, 50, 100, 200, 500])
  readonly recentMs = new RecentValues()
  readonly recentSizes = new RecentValues()

  /** Counts one group, written or failed. */
  observe(commits: number, ms: number): void {
    this.commits += commits
    this.latencyMs.observe(ms)
    this.sizes.observe(commits)
    this.recentMs.add(ms)
    this.recentSizes.add(commits)
  }
}

/** The metrics of a node, by kind of actors and of its commits. They count from its start. */
export class RuntimeMetrics {
  readonly kinds = new Map<string, KindMetrics>()
  readonly commits = new CommitMetrics()

  of(kind: string): KindMetrics {
    let metrics = this.kinds.get(kind)
    if (metrics === undefined) {
      metrics = new KindMetrics()
      this.kinds.set(kind, metrics)
    }
    return metrics
  }
}
