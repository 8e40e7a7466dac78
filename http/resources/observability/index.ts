/** Health, metrics and the archive of a running node (protocol §6). */
export { observabilityOperations } from "./observability-operations.ts"
export { observabilityRoutes } from "./observability-routes.ts"
export { makeMetricsText } from "./prometheus-text.ts"
