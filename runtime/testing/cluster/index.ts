/** A simulated cluster: nodes with the real runtime, on what they share, with faults. */
export { type AnyMessage, type ClientAnswer, ClusterClient,
  type SettleAnswer } from "./cluster-client.ts"
export { ClusterNode, incarnationPrefix, type NodeEnvironment, type NodeNetwork,
  type NodeSeams } from "./cluster-node.ts"
export { type ClusterOptions, type ClusterPlan, SimulatedCluster,
  type StoreParts } from "./cluster.ts"
export { type Fault, faultOf, rollingRestarts } from "./faults.ts"
export { type ClusterNoise, noiseOf, quiet, streamCount, upTo } from "./noise.ts"
export { SharedBlobs } from "./shared-blobs.ts"
export { SharedCalls } from "./shared-calls.ts"
export { SharedRecords } from "./shared-records.ts"
export { type ApplyCommit, faithful, type NodeLater, type SharedStore, type StorageLine,
  type StoredChange, type StoreEvents } from "./shared-storage.ts"
