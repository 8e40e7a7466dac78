/** Health, metrics and the archive of a running node (protocol §6). */
export { observabilityOperations } from "./observability-operations.ts"
export { insideRoutes } from "./observability-routes.ts"
export { metricsText } from "./prometheus-text.ts"
