/** Queries as resources (protocol §3). */
export { queryResource } from "./query-resource.ts"
export { queryView } from "./query-views.ts"
