/**
 * The current metrics of a node, as families of samples in base units. `/metrics` renders them for
 * Prometheus, and a node that exports them sends the same ones.
 */
import type { OutboundService, UsageLedger } from "../../../actors/index.ts"
import type { Histogram, SystemApi } from "../../../runtime/index.ts"
import type { HttpMetrics } from "../../pipeline/index.ts"
import type { DiskFloor } from "../../rates/index.ts"

export type MetricLabels = Readonly<Record<string, string>>

/** A sample for each set of labels. */
type LabeledSamples<Sample> = ReadonlyArray<readonly [labels: MetricLabels, sample: Sample]>

/** The numbers of one metric. Its name has neither `restante_` nor `_total`. */
interface NumberFamily {
  readonly type: "counter" | "gauge"
  readonly name: string
  readonly about: string
  readonly samples: LabeledSamples<number>
}

/** The histograms of one metric. */
interface HistogramFamily {
  readonly type: "histogram"
  readonly name: string
  readonly about: string
  readonly samples: LabeledSamples<Histogram>
  /** Converts the values to the unit of the metric. */
  readonly divisor: number
}

export type MetricFamily = NumberFamily | HistogramFamily

/** One number, or a number for each set of labels. */
type Samples = number | LabeledSamples<number>

const labeled = (samples: Samples): LabeledSamples<number> =>
  typeof samples === "number" ? [[{}, samples]] : samples

const counter = (name: string, about: string, samples: Samples): MetricFamily => ({
  type: "counter",
  name,
  about,
  samples: labeled(samples)
})

const gauge = (name: string, about: string, samples: Samples): MetricFamily => ({
  type: "gauge",
  name,
  about,
  samples: labeled(samples)
})

const histogram = (
  name: string,
  about: string,
  samples: LabeledSamples<Histogram>,
  divisor = 1
): MetricFamily => ({ type: "histogram", name, about, samples, divisor })

const msPerSecond = 1000

type Snapshot = ReturnType<SystemApi["snapshot"]>

type KindMetrics = ReturnType<Snapshot["metrics"]["of"]>

const actorCounters: ReadonlyArray<readonly [name: string, about: string, keyof KindMetrics]> = [
  ["decisions", "Decisions", "decisions"],
  ["refusals", "Decisions that refused a message", "refusals"],
  ["restarts", "Restarts after a defect", "restarts"],
  ["quarantines", "Quarantines after too many restarts", "quarantines"],
  ["redecisions", "Messages decided again after a lost commit", "retriedDecisions"],
  ["activations", "Actors loaded into memory", "activations"],
  ["passivations", "Idle actors removed from memory", "passivations"]
]

const actorMetrics = ({ activations, metrics }: Snapshot): ReadonlyArray<MetricFamily> => {
  const kinds = [...activations]
  return [
    gauge("actors_active", "Actors in memory", kinds.map(([kind, now]) => [{ kind }, now.active])),
    gauge(
      "actor_inbox_messages",
      "Messages without a reply so far",
      kinds.map(([kind, now]) => [{ kind }, now.queued])
    ),
    ...actorCounters.map(([name, about, field]) =>
      counter(`actor_${name}`, about, kinds.map(([kind]) => [{ kind }, metrics.of(kind)[field]]))
    )
  ]
}

const commitMetrics = ({ metrics: { commits } }: Snapshot): ReadonlyArray<MetricFamily> => [
  counter("commit_groups", "Commit groups written", commits.latencyMs.count),
  counter("commits", "Commits written in groups", commits.commits),
  counter("commit_failures", "Commits that the store refused or did not answer", commits.failures),
  counter("commit_conflicts", "Commits that a fence rejected", commits.conflicts),
  histogram(
    "commit_duration_seconds",
    "From the start of a group until it is durable",
    [[{}, commits.latencyMs]],
    msPerSecond
  ),
  histogram("commit_group_commits", "Commits in a group", [[{}, commits.sizes]])
]

const natsMetrics = ({ traffic }: Snapshot): ReadonlyArray<MetricFamily> => [
  counter("nats_messages", "Messages sent to NATS", traffic?.messages ?? 0),
  counter("nats_writes", "Turns of the event loop in which it sent messages", traffic?.writes ?? 0)
]

const nodeMetrics = (
  { earliestTimerMs, quarantined, timers, timersDue, timersInFlight }: Snapshot,
  { nodes, owners, self }: ReturnType<SystemApi["cluster"]>,
  nowMs: number
): ReadonlyArray<MetricFamily> => {
  const { heapUsed, rss } = process.memoryUsage()
  const latenessMs = earliestTimerMs === undefined ? 0 : Math.max(0, nowMs - earliestTimerMs)
  return [
    gauge("timers", "Timers in memory", timers),
    gauge("timers_due", "Due timers that are not delivered yet", timersDue),
    gauge("timers_in_flight", "Delivered timers without an answer so far", timersInFlight),
    gauge("cluster_members", "Nodes in the cluster, as this one sees it", nodes.length),
    gauge(
      "shards_owned",
      "Shards that this node owns",
      owners.filter((owner) => owner === self).length
    ),
    gauge("timer_lateness_seconds", "How late the earliest timer is", latenessMs / msPerSecond),
    gauge("actors_quarantined", "Actors in quarantine", quarantined.length),
    gauge("process_resident_memory_bytes", "Resident memory", rss),
    gauge("process_heap_used_bytes", "Used heap", heapUsed),
    gauge("process_uptime_seconds", "Time since the process started", process.uptime())
  ]
}

const httpMetricsOf = (
  { overQuota, rateLimited, routes }: HttpMetrics
): ReadonlyArray<MetricFamily> => {
  const all = [...routes.values()]
  return [
    counter(
      "http_rate_limited",
      "Requests that exceeded a rate limit",
      Object.entries(rateLimited).map(([policy, count]) => [{ policy }, count])
    ),
    counter(
      "quota_refusals",
      "Bodies that were refused because they exceeded a quota",
      Object.entries(overQuota).map(([quota, count]) => [{ quota }, count])
    ),
    counter(
      "http_requests",
      "Answered requests",
      all.flatMap(({ classes, method, route }) =>
        [...classes].map(([statusClass, count]) =>
          [{ method, route, status: `${statusClass}xx` }, count] as const
        )
      )
    ),
    histogram(
      "http_request_duration_seconds",
      "From the head of a request to its answer",
      all.map(({ durationMs, method, route }) => [{ method, route }, durationMs]),
      msPerSecond
    )
  ]
}

const deliveryMetrics = (
  metrics: ReturnType<OutboundService["metrics"]>
): ReadonlyArray<MetricFamily> => {
  // A deferred attempt never began: the limiter or circuit breaker of its origin prevented it.
  const { Deferred: deferred, ...attempts } = metrics.outcomes
  const snakeCase = (name: string) => name.replace(/(?!^)(?=[A-Z])/g, "_").toLowerCase()
  return [
    counter("delivery_deferred", "Attempts deferred before they began", deferred),
    counter(
      "delivery_attempts",
      "Requests made to other services",
      Object.entries(attempts).map(([name, count]) => [{ outcome: snakeCase(name) }, count])
    ),
    gauge("delivery_in_flight", "Current requests to other services", metrics.inFlight),
    gauge("delivery_waiting", "Attempts that wait for a permit of their origin", metrics.waiting),
    gauge(
      "delivery_oldest_waiting_seconds",
      "How long the oldest of them has waited",
      metrics.oldestWaitingMs / msPerSecond
    ),
    gauge(
      "delivery_circuits_open",
      "Origins whose circuit breaker is open",
      metrics.circuitsOpen
    ),
    gauge("delivery_connections", "Open connections to other services", metrics.connections)
  ]
}

const diskMetrics = (figures: DiskFloor["figures"]): ReadonlyArray<MetricFamily> =>
  figures === undefined ? [] : [
    gauge("disk_free_bytes", "Free space on the disk of the store", figures.freeBytes),
    gauge(
      "disk_floor_bytes",
      "Free space below which nothing is stored without an account",
      figures.floorBytes
    )
  ]

const usageMetrics = (
  { anonymousTotal, limits }: Pick<UsageLedger, "anonymousTotal" | "limits">
): ReadonlyArray<MetricFamily> => [
  ...anonymousTotal === undefined ? [] : [
    gauge(
      "anonymous_content_bytes",
      "Content of all clients without an account",
      anonymousTotal.bytes
    ),
    gauge(
      "anonymous_content_resources",
      "Content resources of all clients without an account",
      anonymousTotal.contents
    )
  ],
  gauge(
    "anonymous_content_limit_bytes",
    "What content of all clients without an account may use",
    limits.anonymousBytesMax
  )
]

/** What the metrics are read from; `delivery` is for outbound requests. */
export interface MetricsSources {
  readonly system: SystemApi
  readonly httpMetrics: HttpMetrics
  readonly nowMs: () => number
  readonly delivery?: OutboundService["metrics"]
  /** The requests for anonymous deposits that were dropped for want of a budget. */
  readonly droppedRequests?: { readonly total: number }
  readonly diskFloor?: DiskFloor | undefined
  readonly usage?: Pick<UsageLedger, "anonymousTotal" | "limits">
  /** The spans that the node has recorded and not delivered to the collector. */
  readonly droppedSpans?: { readonly total: number }
}

/** Returns a function that reads the current metrics. */
export const makeMetricFamilies = (sources: MetricsSources) => (): ReadonlyArray<MetricFamily> => {
  const { delivery, diskFloor, droppedRequests, droppedSpans, httpMetrics, nowMs, system, usage } =
    sources
  const snapshot = system.snapshot()
  return [
    ...actorMetrics(snapshot),
    ...commitMetrics(snapshot),
    ...natsMetrics(snapshot),
    ...nodeMetrics(snapshot, system.cluster(), nowMs()),
    ...diskMetrics(diskFloor?.figures),
    ...usage === undefined ? [] : usageMetrics(usage),
    ...httpMetricsOf(httpMetrics),
    ...delivery === undefined ? [] : deliveryMetrics(delivery()),
    ...droppedRequests === undefined ? [] : [
      counter(
        "anonymous_requests_dropped",
        "Fetches and receipts of anonymous deposits that were dropped for want of a budget",
        droppedRequests.total
      )
    ],
    ...droppedSpans === undefined ? [] : [
      counter("telemetry_spans_dropped", "Spans that no collector took", droppedSpans.total)
    ]
  ]
}
