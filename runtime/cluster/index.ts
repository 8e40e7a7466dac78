/** Which node owns which shard: membership, claims, handoff and node status. */
export { claimKey } from "./claims.ts"
export { clusterPlacement, type ClusterPlacementOptions } from "./cluster-placement.ts"
export { memberKey, memberText } from "./member-entry.ts"
export { NodeNameTaken } from "./membership.ts"
export type { NodeStatusApi } from "./node-status.ts"
export { type ClusterView, type NodeView, ownsAll, Placement, type PlacementApi,
  singleNodePlacement } from "./placement.ts"
