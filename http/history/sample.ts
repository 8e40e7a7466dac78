/** One sample of a node's figures: what it did since the sample before, and how it is. */
import type { OutboundService } from "../../actors/index.ts"
import type { Histogram, SystemApi } from "../../runtime/index.ts"

/** The counts of a histogram at one time, by its upper bounds. */
interface Counts {
  readonly bounds: ReadonlyArray<number>
  readonly counts: ReadonlyArray<number>
}

/** What a node has counted since its start, and what it has now. */
export interface Reading {
  /** Time of day, ms since the epoch. */
  readonly atMs: number
  /** Time by a clock that nobody sets, ms. */
  readonly monotonicMs: number
  /** Answered requests, by ms from the head of a request to its answer. */
  readonly requests: Counts
  readonly commits: number
  /** Groups of commits, by ms from the start of a group until it is durable. */
  readonly groups: Counts
  /** Requests made to other services. */
  readonly attempts: number
  /** How long the event loop has worked and waited, ms. */
  readonly loop: { readonly active: number; readonly idle: number }
  readonly now: Gauges
}

/** What is the case at the time of a sample. */
interface Gauges {
  /** Messages of actors without a reply so far. */
  readonly queued: number
  readonly timersDue: number
  /** Attempts that wait for a permit of their origin. */
  readonly deliveriesWaiting: number
  /** Resident memory. */
  readonly memoryBytes: number
}

/** A quantile is left out if nothing was counted since the sample before. */
export interface Sample extends Gauges {
  /** Time of day, ms since the epoch. */
  readonly atMs: number
  readonly requestsPerSecond: number
  readonly requestP50Ms?: number
  readonly requestP99Ms?: number
  readonly commitsPerSecond: number
  readonly commitP50Ms?: number
  readonly commitP99Ms?: number
  readonly attemptsPerSecond: number
  /** The share of time in which the event loop worked, in percent. */
  readonly loopPercent: number
}

/** What readings are taken from. */
export interface ReadingSources {
  readonly system: Pick<SystemApi, "snapshot">
  /** The times of requests, by route and method. */
  readonly httpMetrics: {
    readonly routes: ReadonlyMap<string, { readonly durationMs: Histogram }>
  }
  readonly deliveries: Pick<OutboundService, "metrics">
  readonly nowMs: () => number
  readonly monotonicMs: () => number
}

/** Adds histograms up that have the same bounds. */
const sumOf = (histograms: ReadonlyArray<Histogram>): Counts => {
  const bounds = histograms[0]?.bounds ?? []
  const counts = Array.from(
    { length: bounds.length + 1 },
    (_, at) => histograms.reduce((sum, one) => sum + (one.counts[at] ?? 0), 0)
  )
  return { bounds, counts }
}

/** Reads what a node has counted. */
export const readingOf = (
  { deliveries, httpMetrics, monotonicMs, nowMs, system }: ReadingSources
): Reading => {
  const { activations, metrics: { commits }, timersDue } = system.snapshot()
  const { outcomes, waiting } = deliveries.metrics()
  const { Deferred: _, ...attempts } = outcomes
  const { active, idle } = performance.eventLoopUtilization()
  return {
    atMs: nowMs(),
    monotonicMs: monotonicMs(),
    requests: sumOf([...httpMetrics.routes.values()].map(({ durationMs }) => durationMs)),
    commits: commits.commits,
    groups: sumOf([commits.latencyMs]),
    attempts: Object.values(attempts).reduce((sum, count) => sum + count, 0),
    loop: { active, idle },
    now: {
      queued: [...activations.values()].reduce((sum, { queued }) => sum + queued, 0),
      timersDue,
      deliveriesWaiting: waiting,
      memoryBytes: process.memoryUsage.rss()
    }
  }
}

/** What was counted between two readings. The first may come before the first request. */
const between = (before: Counts, { bounds, counts }: Counts): Counts => ({
  bounds,
  counts: counts.map((count, at) => count - (before.counts[at] ?? 0))
})

const totalOf = ({ counts }: Counts): number => counts.reduce((sum, count) => sum + count, 0)

/**
 * The quantile at `fraction`, 0 to 1, as Prometheus' `histogram_quantile` estimates it: values are
 * evenly spread in their bucket, and those above the last bound count as that bound. Undefined if
 * nothing was counted.
 */
export const quantileOf = (counted: Counts, fraction: number): number | undefined => {
  const rank = fraction * totalOf(counted)
  if (rank === 0) return undefined
  let below = 0
  for (const [at, count] of counted.counts.entries()) {
    const lower = counted.bounds[at - 1] ?? 0
    const upper = counted.bounds[at] ?? lower
    if (below + count >= rank) return lower + (upper - lower) * (rank - below) / count
    below += count
  }
  return undefined
}

/** Rounded to two decimals: the estimate is not better. */
const rounded = (value: number): number => Math.round(value * 100) / 100

const quantiles = <P50 extends string, P99 extends string>(
  counted: Counts,
  p50: P50,
  p99: P99
): { readonly [Name in P50 | P99]?: number } => {
  const [median, high] = [quantileOf(counted, 0.5), quantileOf(counted, 0.99)]
  if (median === undefined || high === undefined) return {}
  const found: { [Name in P50 | P99]?: number } = {}
  return Object.assign(found, { [p50]: rounded(median), [p99]: rounded(high) })
}

/** The sample between two readings, of which the second is the later one. */
export const sampleOf = (before: Reading, after: Reading): Sample => {
  const seconds = Math.max(1, after.monotonicMs - before.monotonicMs) / 1_000
  const perSecond = (count: number) => rounded(count / seconds)
  const requests = between(before.requests, after.requests)
  const active = after.loop.active - before.loop.active
  const loopMs = active + after.loop.idle - before.loop.idle
  return {
    atMs: after.atMs,
    requestsPerSecond: perSecond(totalOf(requests)),
    ...quantiles(requests, "requestP50Ms", "requestP99Ms"),
    commitsPerSecond: perSecond(after.commits - before.commits),
    ...quantiles(between(before.groups, after.groups), "commitP50Ms", "commitP99Ms"),
    attemptsPerSecond: perSecond(after.attempts - before.attempts),
    loopPercent: loopMs <= 0 ? 0 : rounded(100 * active / loopMs),
    ...after.now
  }
}
