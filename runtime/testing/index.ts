/** The deterministic simulator: whole clusters with the real runtime, in virtual time. */
export { type AnyMessage, type ApplyCommit, type ClientAnswer, ClusterClient, ClusterNode,
  type ClusterNoise, type ClusterOptions, type ClusterPlan, faithful, type Fault, faultOf,
  incarnationPrefix, type NodeEnvironment, type NodeLater, type NodeNetwork, type NodeSeams,
  noiseOf, quiet, rollingRestarts, SharedBlobs, SharedCalls, SharedRecords, type SharedStore,
  SimulatedCluster, type StorageLine, type StoredChange, type StoreEvents, type StoreParts,
  streamCount, upTo } from "./cluster/index.ts"
export { byResource, check, Contradiction, expectLinearizable, type Model, type OperationOutcome,
  type RecordedOperation, type Verdict } from "./history/index.ts"
export { failureReport, type ReportOptions, type RunPlan, type RunResult,
  smallestPlan } from "./report/index.ts"
export { type Computer, epochMs, pick, type Random, randomOf, Trace,
  VirtualTime } from "./time/index.ts"
