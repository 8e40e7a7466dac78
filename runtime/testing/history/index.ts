/** Histories of operations, and the checker of whether a history is linearizable. */
export { byResource, type HistoryOperation, type Model, type OperationOutcome } from "./history.ts"
export { check, Contradiction, expectLinearizable, type Verdict } from "./linearizable.ts"
