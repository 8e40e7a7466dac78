/** Failure reports: what the service deposits in the mailbox that an account chooses for them. */
export { ReportsLookup } from "./account-lookup.ts"
export { AdmitFailureReport, admitFailureReport, type AdmitFailureReportReply, type FailureCause,
  FailureReports, withReportsMailbox } from "./admission.ts"
export { openReportsMailbox, reportsMailboxName } from "./default-mailbox.ts"
export { reportFailure } from "./deposit.ts"
export { afterReportStep, beginReportStep, FailureReport, FailureReportAddressed,
  FailureReportSettled, failureReportsFormat, isReportWaiting, mayReportAgain, originOf,
  type ReportFailure, undeliveredText, withoutWaitingReport } from "./report.ts"
