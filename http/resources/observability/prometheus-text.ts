/** `/metrics`: the current metrics in the Prometheus text format. */
import type { Histogram } from "../../../runtime/index.ts"
import { makeMetricFamilies, type MetricFamily, type MetricLabels,
  type MetricsSources } from "./metric-families.ts"

/** Names and labels are the service's own: JSON escapes in them what Prometheus escapes. */
const sampleLine = (name: string, labels: MetricLabels, value: number): string => {
  const pairs = Object.entries(labels).map(([label, text]) => `${label}=${JSON.stringify(text)}`)
  return `${name}${pairs.length === 0 ? "" : `{${pairs.join(",")}}`} ${value}\n`
}

/** The buckets are cumulative; `divisor` converts the values to the unit of the metric. */
const histogramLines = (
  name: string,
  labels: MetricLabels,
  { bounds, count, counts, sum }: Histogram,
  divisor: number
): ReadonlyArray<string> => {
  let below = 0
  const buckets = bounds.map((bound, at) => {
    below += counts[at] ?? 0
    return sampleLine(`${name}_bucket`, { ...labels, le: String(bound / divisor) }, below)
  })
  return [
    ...buckets,
    sampleLine(`${name}_bucket`, { ...labels, le: "+Inf" }, count),
    sampleLine(`${name}_sum`, labels, sum / divisor),
    sampleLine(`${name}_count`, labels, count)
  ]
}

const familyText = (family: MetricFamily): string => {
  const { about, type } = family
  const name = `restante_${family.name}${type === "counter" ? "_total" : ""}`
  const lines = family.type === "histogram"
    ? family.samples.flatMap(([labels, one]) => histogramLines(name, labels, one, family.divisor))
    : family.samples.map(([labels, value]) => sampleLine(name, labels, value))
  return `# HELP ${name} ${about}\n# TYPE ${name} ${type}\n${lines.join("")}`
}

/** Returns a function that renders the current metrics. */
export const makeMetricsText = (sources: MetricsSources): () => string => {
  const families = makeMetricFamilies(sources)
  return () => families().map(familyText).join("")
}
