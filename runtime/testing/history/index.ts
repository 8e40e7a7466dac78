/** Histories of operations, and the checker of whether a history is linearizable. */
export { byResource, type Model, type OperationOutcome, type RecordedOperation } from "./history.ts"
export { check, Contradiction, expectLinearizable, type Verdict } from "./linearizable.ts"
