/** The deterministic simulator: whole clusters with the real runtime, in virtual time. */
export { type AnyMessage, type ApplyCommit, type ClientAnswer, ClusterClient, type ClusterNoise,
  type ClusterOptions, type ClusterPlan, commitFateOf, faithful, type Fault, faultOf,
  incarnationPrefix, type NodeEnvironment, type NodeLater, type NodeNetwork, NodeProcess,
  type NodeSeams, noiseOf, quiet, rollingRestarts, SharedBlobs, SharedCalls, SharedRecords,
  type SharedStore, SimulatedCluster, type StorageLine, type StoredChange, type StoreEvents,
  type StoreParts, streamCount, upTo } from "./cluster/index.ts"
export { byResource, check, Contradiction, expectLinearizable, type HistoryOperation, type Model,
  type OperationOutcome, type Verdict } from "./history/index.ts"
export { startTestNode, type TestNode, type TestNodeOptions } from "./node/index.ts"
export { failureReport, type ReportOptions, type RunPlan, type RunResult,
  smallestPlan } from "./report/index.ts"
export { type ActorModel, type AnyActorModel, type ClientAttempt, type ClientTurn, type Draw,
  type Invariant, OutsideFailure, type ReceivedReply, request, simulate, type SimulatedHost,
  type SimulatedRequest, type SimulateOptions, SimulationFailed, type SimulationNoise,
  type SimulationSummary, type SimulationView, type TestedActor,
  withMessage } from "./simulation/index.ts"
export { type CellCount, type CoverageReport, type DecidedParts, type GivenContext, type GivenState,
  noServices, type TableTest, testTable, UnexpectedDecision,
  type WhenDecided } from "./table/index.ts"
export { type Computer, epochMs, pick, type Random, randomOf, Trace,
  VirtualTime } from "./time/index.ts"
