/** Which node owns which shard: membership, claims, handoff and node status. */
export { clustered, type ClusteredOptions } from "./clustered-placement.ts"
export { NodeNameTaken } from "./membership.ts"
export type { NodeStatusApi } from "./node-status.ts"
export { alone, type ClusterView, type NodeView, ownsAll, Placement,
  type PlacementApi } from "./placement.ts"
