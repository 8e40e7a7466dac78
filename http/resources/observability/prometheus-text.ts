/**
 * `/metrics`: everything measured, in the Prometheus text format. Nothing is pushed: each series
 * reads the plain counters when it is asked.
 */
import { Context, Metric } from "effect"
import { PrometheusMetrics } from "effect/observability"
import type { SystemApi } from "../../../runtime/index.ts"
import { type DeliveryMetrics, durationBoundsMs, type HttpMetrics } from "../../pipeline/index.ts"

type Attributes = Readonly<Record<string, string>>

/** Counts by bound, made cumulative as the format wants them. */
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

const ignore = { update: () => {}, modify: () => {} }

class Exporter {
  readonly context = Context.make(Metric.MetricRegistry, new Map())
  private readonly known = new Set<string>()

  counter(name: string, description: string, attributes: Attributes, read: () => number): void {
    this.once(name, attributes, () => {
      const metric = Metric.counter(name, { description, attributes, incremental: true })
      Metric.registerUnsafe(metric, this.context, {
        get: () => ({ count: read(), incremental: true }),
        ...ignore
      })
    })
  }

  gauge(name: string, description: string, attributes: Attributes, read: () => number): void {
    this.once(name, attributes, () => {
      const metric = Metric.gauge(name, { description, attributes })
      Metric.registerUnsafe(metric, this.context, { get: () => ({ value: read() }), ...ignore })
    })
  }

  histogram(
    name: string,
    description: string,
    attributes: Attributes,
    bounds: ReadonlyArray<number>,
    read: () => { readonly counts: ReadonlyArray<number>; count: number; sumMs: number }
  ): void {
    this.once(name, attributes, () => {
      const metric = Metric.histogram(name, { description, attributes, boundaries: bounds })
      Metric.registerUnsafe(metric, this.context, {
        get: () => {
          const { count, counts, sumMs } = read()
          return { buckets: cumulative(bounds, counts), count, min: 0, max: 0, sum: sumMs }
        },
        ...ignore
      })
    })
  }

  private once(name: string, attributes: Attributes, register: () => void): void {
    const key = `${name} ${JSON.stringify(attributes)}`
    if (this.known.has(key)) return
    this.known.add(key)
    register()
  }
}

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
      "restante_actor_queue_length",
      "Messages without a reply yet",
      attributes,
      () => now()?.queued ?? 0
    )
    counter("decisions", "Decisions made", () => counts.decisions)
    counter("refusals", "Decisions that refused", () => counts.refusals)
    counter("restarts", "Restarts after a defect", () => counts.restarts)
    counter("quarantines", "Actors put to rest after too many restarts", () => counts.quarantines)
    counter(
      "redecisions",
      "Messages decided anew after a lost commit",
      () => counts.retriedDecisions
    )
    counter("activations", "Actors loaded", () => counts.activations)
    counter("passivations", "Actors put to sleep", () => counts.passivations)
  }
}

const commitSeries = (exporter: Exporter, system: SystemApi): void => {
  const { metrics: { commits } } = system.snapshot()
  const none = {}
  const counter = (name: string, description: string, read: () => number) =>
    exporter.counter(`restante_commit_${name}_total`, description, none, read)
  counter("groups", "Groups written", () => commits.groups)
  counter("commits", "Commits written in groups", () => commits.commits)
  counter("failures", "Groups that the store did not take", () => commits.failures)
  counter("conflicts", "Commits refused by a fence", () => commits.conflicts)
  exporter.histogram(
    "restante_commit_latency_milliseconds",
    "From the group's start until it is durable",
    none,
    commits.latency.boundsMs,
    () => commits.latency
  )
  const { sizes } = commits
  exporter.histogram(
    "restante_commit_group_size",
    "Commits of a group",
    none,
    sizes.bounds,
    () => ({ counts: sizes.counts, count: sizes.count, sumMs: sizes.sum })
  )
}

const nodeSeries = (exporter: Exporter, system: SystemApi, nowMs: () => number): void => {
  const none = {}
  const gauge = (name: string, description: string, read: () => number) =>
    exporter.gauge(`restante_${name}`, description, none, read)
  gauge("timers", "Timers known", () => system.snapshot().timers)
  gauge("timers_due", "Timers due and not delivered", () => system.snapshot().timersDue)
  gauge(
    "timers_in_flight",
    "Timers delivered and not answered",
    () => system.snapshot().timersInFlight
  )
  gauge(
    "cluster_members",
    "Nodes of the cluster, as this one sees it",
    () => system.cluster().nodes.length
  )
  gauge("shards_owned", "Shards that this node holds", () => {
    const { owners, self } = system.cluster()
    return owners.filter((owner) => owner === self).length
  })
  gauge("wakeup_lateness_milliseconds", "How late the earliest timer is", () => {
    const { earliestTimerMs } = system.snapshot()
    return earliestTimerMs === undefined ? 0 : Math.max(0, nowMs() - earliestTimerMs)
  })
  gauge("actors_quarantined", "Actors at rest", () => system.snapshot().quarantined.length)
  gauge("process_resident_memory_bytes", "Resident memory", () => process.memoryUsage.rss())
  gauge("process_heap_used_bytes", "Heap in use", () => process.memoryUsage().heapUsed)
  gauge("process_uptime_seconds", "Since the process started", () => process.uptime())
}

const rateSeries = (exporter: Exporter, { rateLimited }: HttpMetrics): void => {
  for (const policy of ["address", "account"] as const) {
    exporter.counter(
      "restante_http_rate_limited_total",
      "Requests refused by the limits on rates",
      { policy },
      () => rateLimited[policy]
    )
  }
}

const httpSeries = (exporter: Exporter, measures: HttpMetrics): void => {
  for (const one of measures.routes.values()) {
    const { method, route } = one
    for (const statusClass of one.classes.keys()) {
      exporter.counter(
        "restante_http_requests_total",
        "Requests answered",
        { method, route, status: `${statusClass}xx` },
        () => one.classes.get(statusClass) ?? 0
      )
    }
    exporter.histogram(
      "restante_http_duration_milliseconds",
      "From the request's head to its answer",
      { method, route },
      durationBoundsMs,
      () => one
    )
  }
}

/** The outcome that is no attempt: none was made, since the origin's turn or circuit forbade it. */
const deferred = "Deferred"

const deliverySeries = (exporter: Exporter, measures: () => DeliveryMetrics): void => {
  const none = {}
  const gauge = (name: string, description: string, read: () => number) =>
    exporter.gauge(`restante_delivery_${name}`, description, none, read)
  for (const name of Object.keys(measures().outcomes)) {
    const read = () => measures().outcomes[name] ?? 0
    if (name === deferred) {
      const about = "Attempts put off before they were made"
      exporter.counter("restante_delivery_deferred_total", about, none, read)
    } else {
      const outcome = { outcome: name.toLowerCase() }
      const about = "Requests made to other services"
      exporter.counter("restante_delivery_attempts_total", about, outcome, read)
    }
  }
  gauge("in_flight", "Requests to other services under way", () => measures().inFlight)
  gauge("waiting", "Attempts waiting for their turn at an origin", () => measures().waiting)
  gauge(
    "oldest_waiting_seconds",
    "How long the oldest of them waits",
    () => measures().oldestWaitingMs / 1000
  )
  gauge("circuits_open", "Origins left alone after failures", () => measures().circuitsOpen)
  gauge("connections", "Connections open to other services", () => measures().connections)
}

/** Answers the text of `/metrics`, as of the time of the call; `delivery` where it is measured. */
export const makeMetricsText = (
  system: SystemApi,
  measures: HttpMetrics,
  nowMs: () => number,
  delivery?: () => DeliveryMetrics
): () => string => {
  const exporter = new Exporter()
  commitSeries(exporter, system)
  nodeSeries(exporter, system, nowMs)
  rateSeries(exporter, measures)
  if (delivery !== undefined) deliverySeries(exporter, delivery)
  return () => {
    kindSeries(exporter, system)
    httpSeries(exporter, measures)
    return PrometheusMetrics.formatUnsafe(exporter.context)
  }
}
