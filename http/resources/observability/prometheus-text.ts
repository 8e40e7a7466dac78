/**
 * `/metrics`: all metrics in the Prometheus text format, in base units. Each series reads the plain
 * counters when Prometheus scrapes it.
 */
import { Context, Metric } from "effect"
import { PrometheusMetrics } from "effect/observability"
import type { OutboundService } from "../../../actors/index.ts"
import type { Histogram, SystemApi } from "../../../runtime/index.ts"
import type { HttpMetrics } from "../../pipeline/index.ts"

type Attributes = Readonly<Record<string, string>>

/** The counts by bound, cumulative as Prometheus needs them. */
const cumulative = (
  bounds: ReadonlyArray<number>,
  counts: ReadonlyArray<number>
): ReadonlyArray<[number, number]> => {
  let total = 0
  return bounds.map((bound, at) => {
    total += counts[at] ?? 0
    return [bound, total]
  })
}

const readOnly = { update: () => {}, modify: () => {} }

class Exporter {
  readonly context = Context.make(Metric.MetricRegistry, new Map())
  private readonly registered = new Set<string>()

  counter(name: string, description: string, attributes: Attributes, read: () => number): void {
    this.once(name, attributes, () => {
      const metric = Metric.counter(name, { description, attributes, incremental: true })
      Metric.registerUnsafe(metric, this.context, {
        get: () => ({ count: read(), incremental: true }),
        ...readOnly
      })
    })
  }

  gauge(name: string, description: string, attributes: Attributes, read: () => number): void {
    this.once(name, attributes, () => {
      const metric = Metric.gauge(name, { description, attributes })
      Metric.registerUnsafe(metric, this.context, { get: () => ({ value: read() }), ...readOnly })
    })
  }

  /** `divisor` converts the values of the histogram to the metric's unit. */
  histogram(
    name: string,
    description: string,
    attributes: Attributes,
    histogram: Histogram,
    divisor = 1
  ): void {
    const bounds = histogram.bounds.map((bound) => bound / divisor)
    this.once(name, attributes, () => {
      const metric = Metric.histogram(name, { description, attributes, boundaries: bounds })
      Metric.registerUnsafe(metric, this.context, {
        get: () => {
          const { count, counts, sum } = histogram
          return { buckets: cumulative(bounds, counts), count, min: 0, max: 0, sum: sum / divisor }
        },
        ...readOnly
      })
    })
  }

  private once(name: string, attributes: Attributes, register: () => void): void {
    const key = `${name} ${JSON.stringify(attributes)}`
    if (this.registered.has(key)) return
    this.registered.add(key)
    register()
  }
}

const msPerSecond = 1000

const kindSeries = (exporter: Exporter, system: SystemApi): void => {
  const { metrics, activations } = system.snapshot()
  for (const kind of activations.keys()) {
    const attributes = { kind }
    const now = () => system.snapshot().activations.get(kind)
    const counts = metrics.of(kind)
    const counter = (name: string, description: string, read: () => number) =>
      exporter.counter(`restante_actor_${name}_total`, description, attributes, read)
    exporter.gauge(
      "restante_actors_active",
      "Actors in memory",
      attributes,
      () => now()?.active ?? 0
    )
    exporter.gauge(
      "restante_actor_inbox_messages",
      "Messages without a reply so far",
      attributes,
      () => now()?.queued ?? 0
    )
    counter("decisions", "Decisions", () => counts.decisions)
    counter("refusals", "Decisions that refused a message", () => counts.refusals)
    counter("restarts", "Restarts after a defect", () => counts.restarts)
    counter("quarantines", "Quarantines after too many restarts", () => counts.quarantines)
    counter(
      "redecisions",
      "Messages decided again after a lost commit",
      () => counts.retriedDecisions
    )
    counter("activations", "Actors loaded into memory", () => counts.activations)
    counter("passivations", "Idle actors removed from memory", () => counts.passivations)
  }
}

const commitSeries = (exporter: Exporter, system: SystemApi): void => {
  const { metrics: { commits } } = system.snapshot()
  const none = {}
  const counter = (name: string, description: string, read: () => number) =>
    exporter.counter(`restante_${name}_total`, description, none, read)
  counter("commit_groups", "Commit groups written", () => commits.latencyMs.count)
  counter("commits", "Commits written in groups", () => commits.commits)
  counter("commit_failures", "Commit groups that the store rejected", () => commits.failures)
  counter("commit_conflicts", "Commits that a fence rejected", () => commits.conflicts)
  exporter.histogram(
    "restante_commit_duration_seconds",
    "From the start of a group until it is durable",
    none,
    commits.latencyMs,
    msPerSecond
  )
  exporter.histogram(
    "restante_commit_group_commits",
    "Commits in a group",
    none,
    commits.sizes
  )
}

const nodeSeries = (exporter: Exporter, system: SystemApi, nowMs: () => number): void => {
  const none = {}
  const gauge = (name: string, description: string, read: () => number) =>
    exporter.gauge(`restante_${name}`, description, none, read)
  gauge("timers", "Timers in memory", () => system.snapshot().timers)
  gauge("timers_due", "Due timers that are not delivered yet", () => system.snapshot().timersDue)
  gauge(
    "timers_in_flight",
    "Delivered timers without an answer so far",
    () => system.snapshot().timersInFlight
  )
  gauge(
    "cluster_members",
    "Nodes in the cluster, as this one sees it",
    () => system.cluster().nodes.length
  )
  gauge("shards_owned", "Shards that this node owns", () => {
    const { owners, self } = system.cluster()
    return owners.filter((owner) => owner === self).length
  })
  gauge("timer_lateness_seconds", "How late the earliest timer is", () => {
    const { earliestTimerMs } = system.snapshot()
    return earliestTimerMs === undefined ? 0 : Math.max(0, nowMs() - earliestTimerMs) / 1000
  })
  gauge("actors_quarantined", "Actors in quarantine", () => system.snapshot().quarantined.length)
  gauge("process_resident_memory_bytes", "Resident memory", () => process.memoryUsage.rss())
  gauge("process_heap_used_bytes", "Used heap", () => process.memoryUsage().heapUsed)
  gauge("process_uptime_seconds", "Time since the process started", () => process.uptime())
}

const rateSeries = (exporter: Exporter, { rateLimited }: HttpMetrics): void => {
  for (const policy of ["address", "account"] as const) {
    exporter.counter(
      "restante_http_rate_limited_total",
      "Requests that exceeded a rate limit",
      { policy },
      () => rateLimited[policy]
    )
  }
}

const httpSeries = (exporter: Exporter, httpMetrics: HttpMetrics): void => {
  for (const one of httpMetrics.routes.values()) {
    const { method, route } = one
    for (const statusClass of one.classes.keys()) {
      exporter.counter(
        "restante_http_requests_total",
        "Answered requests",
        { method, route, status: `${statusClass}xx` },
        () => one.classes.get(statusClass) ?? 0
      )
    }
    exporter.histogram(
      "restante_http_request_duration_seconds",
      "From the head of a request to its answer",
      { method, route },
      one.durationMs,
      msPerSecond
    )
  }
}

/** This outcome is not an attempt: the origin's limiter or circuit breaker prevented it. */
const deferred = "Deferred"

const deliverySeries = (exporter: Exporter, metrics: OutboundService["metrics"]): void => {
  const none = {}
  const gauge = (name: string, description: string, read: () => number) =>
    exporter.gauge(`restante_delivery_${name}`, description, none, read)
  const outcomes = (): Readonly<Record<string, number>> => metrics().outcomes
  for (const name of Object.keys(outcomes())) {
    const read = () => outcomes()[name] ?? 0
    if (name === deferred) {
      const about = "Attempts deferred before they began"
      exporter.counter("restante_delivery_deferred_total", about, none, read)
    } else {
      const outcome = { outcome: name.replace(/(?!^)(?=[A-Z])/g, "_").toLowerCase() }
      const about = "Requests made to other services"
      exporter.counter("restante_delivery_attempts_total", about, outcome, read)
    }
  }
  gauge("in_flight", "Current requests to other services", () => metrics().inFlight)
  gauge("waiting", "Attempts that wait for a permit of their origin", () => metrics().waiting)
  gauge(
    "oldest_waiting_seconds",
    "How long the oldest of them has waited",
    () => metrics().oldestWaitingMs / 1000
  )
  gauge("circuits_open", "Origins whose circuit breaker is open", () => metrics().circuitsOpen)
  gauge("connections", "Open connections to other services", () => metrics().connections)
}

/** Returns a function that renders the current metrics; `delivery` is for outbound requests. */
export const makeMetricsText = (
  system: SystemApi,
  httpMetrics: HttpMetrics,
  nowMs: () => number,
  delivery?: OutboundService["metrics"]
): () => string => {
  const exporter = new Exporter()
  commitSeries(exporter, system)
  nodeSeries(exporter, system, nowMs)
  rateSeries(exporter, httpMetrics)
  if (delivery !== undefined) deliverySeries(exporter, delivery)
  return () => {
    kindSeries(exporter, system)
    httpSeries(exporter, httpMetrics)
    return PrometheusMetrics.formatUnsafe(exporter.context)
  }
}
