/** The state of the cluster, for admins (protocol §6). */
export { clusterResource } from "./cluster-resource.ts"
export { type ClusterStatus, clusterStatus, countQuarantined } from "./cluster-status.ts"
export { keepPublishingFigures } from "./node-figures.ts"
export { recordedTexts } from "./shown-fields.ts"
