/** Queries as resources (protocol §3). */
export { queryOperations } from "./query-operations.ts"
export { queryRoutes } from "./query-routes.ts"
