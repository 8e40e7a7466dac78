/** Health, metrics and the archive of a running node (protocol §6). */
export { makeMetricFamilies, type MetricFamily, type MetricLabels } from "./metric-families.ts"
export { metricsType } from "./observability-handlers.ts"
export { observabilityResource } from "./observability-resource.ts"
export { makeMetricsText } from "./prometheus-text.ts"
