/** The state of the cluster, for admins (protocol §6). */
export { clusterOperations } from "./cluster-operations.ts"
export { clusterRoutes } from "./cluster-routes.ts"
export { postingFigures } from "./node-figures.ts"
