/** Reports of failing runs: shrinking, and the trace of all events. */
export { failureReport, type ReportOptions, type RunPlan, type RunResult,
  smallestPlan } from "./report.ts"
