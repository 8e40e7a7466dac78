/** The state of the cluster, for admins (protocol §6). */
export { clusterOperations } from "./cluster-operations.ts"
export { clusterRoutes } from "./cluster-routes.ts"
export { keepPublishingFigures } from "./node-figures.ts"
