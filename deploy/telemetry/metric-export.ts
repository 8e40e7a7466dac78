/** The metrics of a node as OTLP: what `/metrics` renders, read once for each export. */
import { type OtlpMetrics, OtlpResource } from "effect/observability"
import type { MetricFamily, MetricLabels } from "../../http/index.ts"

type MetricsData = OtlpMetrics.MetricsData

type ScopeMetrics = MetricsData["resourceMetrics"][number]["scopeMetrics"][number]

type Metric = ScopeMetrics["metrics"][number]

/** The metrics that the semantic conventions of OpenTelemetry name. */
const conventionalNames: Readonly<Record<string, string>> = {
  http_request_duration: "http.server.request.duration",
  process_resident_memory: "process.memory.usage",
  process_uptime: "process.uptime"
}

/** The labels that they name. */
const conventionalLabels: Readonly<Record<string, string>> = {
  method: "http.request.method",
  route: "http.route"
}

const units: ReadonlyArray<readonly [suffix: string, unit: string]> = [
  ["_seconds", "s"],
  ["_bytes", "By"]
]

/**
 * The name without its unit, which is a field of its own. A collector that serves Prometheus adds
 * both the unit and `_total`, which makes the name that `/metrics` has.
 */
const named = ({ about, name }: MetricFamily): Pick<Metric, "name" | "description" | "unit"> => {
  const found = units.find(([suffix]) => name.endsWith(suffix))
  const bare = found === undefined ? name : name.slice(0, -found[0].length)
  return {
    name: conventionalNames[bare] ?? `restante.${bare}`,
    description: about,
    ...found === undefined ? {} : { unit: found[1] }
  }
}

const attributesOf = (labels: MetricLabels) =>
  OtlpResource.entriesToAttributes(
    Object.entries(labels).map(([label, value]): [string, unknown] => [
      conventionalLabels[label] ?? label,
      value
    ])
  )

/** Counters count from the start of the process. */
const cumulative = 2 as const

/** When counting began, and now: ns since the epoch, as text. */
export interface ExportTimes {
  readonly startTimeUnixNano: string
  readonly timeUnixNano: string
}

const metricOf = (family: MetricFamily, times: ExportTimes): Metric => {
  if (family.type === "histogram") {
    const { divisor } = family
    const dataPoints = family.samples.map(([labels, { bounds, count, counts, sum }]) => ({
      attributes: attributesOf(labels),
      ...times,
      count,
      sum: sum / divisor,
      bucketCounts: [...counts],
      explicitBounds: bounds.map((bound) => bound / divisor)
    }))
    const histogram = { aggregationTemporality: cumulative, dataPoints }
    return { ...named(family), histogram }
  }
  const dataPoints = family.samples.map(([labels, value]) => ({
    attributes: attributesOf(labels),
    ...times,
    asDouble: value
  }))
  return family.type === "gauge"
    ? { ...named(family), gauge: { dataPoints } }
    : {
      ...named(family),
      sum: { aggregationTemporality: cumulative, isMonotonic: true, dataPoints }
    }
}

/** Whether there is something to send: receivers warn of a metric without data points. */
const hasSamples = ({ samples }: MetricFamily): boolean => samples.length > 0

/** The metrics as one message of OTLP. */
export const metricsData = (
  families: ReadonlyArray<MetricFamily>,
  resource: OtlpResource.Resource,
  scope: { readonly name: string; readonly version: string },
  times: ExportTimes
): MetricsData => ({
  resourceMetrics: [{
    resource,
    scopeMetrics: [{
      scope,
      metrics: families.filter(hasSamples).map((family) => metricOf(family, times))
    }]
  }]
})
