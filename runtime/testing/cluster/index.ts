/** A simulated cluster: nodes with the real runtime, on what they share, with faults. */
export { type AnyMessage, type ClientAnswer, ClusterClient,
  type SettleAnswer } from "./cluster-client.ts"
export { type ClusterOptions, type ClusterPlan, SimulatedCluster,
  type StoreParts } from "./cluster.ts"
export { type Fault, faultOf, rollingRestarts } from "./faults.ts"
export { type NetworkLine, SimulatedNetwork } from "./network.ts"
export { incarnationPrefix, type NodeEnvironment, type NodeNetwork, NodeProcess,
  type NodeSeams } from "./node-process.ts"
export { type ClusterNoise, type CommitFate, commitFateOf, noiseOf, quiet, streamCount,
  upTo } from "./noise.ts"
export { SharedBlobs } from "./shared-blobs.ts"
export { SharedCalls } from "./shared-calls.ts"
export { SharedRecords } from "./shared-records.ts"
export { type ApplyCommit, faithful, type NodeLater, type SharedStore, type StorageLine,
  type StoredChange, type StoreEvents } from "./shared-storage.ts"
