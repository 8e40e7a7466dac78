/**
 * A failure report in the state of the actor that reports, and the next step of its deposit. It is
 * stored with its cause, and waits there until its deposit is settled, so that a crash loses none.
 * Pure.
 */
import { Schema } from "effect"
import { failureReportGiveUpMs, failureReportIntervalMs, failureReportLeaseMs,
  failureReportRetryMaxMs } from "../limits.ts"
import { parseUrl } from "../parse-url.ts"
import { Count } from "../schemas.ts"

/**
 * The format of the cluster from which on failures are reported. An older node neither knows the
 * messages nor begins the deposit of a report that waits.
 */
export const failureReportsFormat = 2

/** Where a report goes: the account, and the mailbox that it had chosen when it was asked. */
const FailureReportTo = Schema.Struct({ account: Schema.String, mailbox: Schema.String })

export type FailureReportTo = typeof FailureReportTo.Type

/** The last report of an actor. It waits for its deposit as long as it has a description. */
export const FailureReport = Schema.Struct({
  /** When its cause was stored: identifies it among the reports of its actor. */
  atMs: Count,
  description: Schema.optionalKey(Schema.String),
  /** Left out until the account has been asked. It stays, so that no other mailbox gets it too. */
  to: Schema.optionalKey(FailureReportTo)
})

export type FailureReport = typeof FailureReport.Type

/** A result of {@link ReportFailure}: the account has chosen this mailbox. The deposit follows. */
export const FailureReportAddressed = Schema.TaggedStruct("FailureReportAddressed", {
  atMs: Count,
  to: FailureReportTo
})

/** The other result: the report is deposited, or never will be. */
export const FailureReportSettled = Schema.TaggedStruct("FailureReportSettled", { atMs: Count })

export type FailureReportProgress =
  | typeof FailureReportAddressed.Type
  | typeof FailureReportSettled.Type

/** The action that makes the next step of a report. Its result is {@link FailureReportProgress}. */
export interface ReportFailure {
  readonly _tag: "ReportFailure"
  readonly atMs: number
  readonly description: string
  readonly to?: FailureReportTo
  /** It has waited for too long: it is not deposited. */
  readonly isOverdue: boolean
}

/** What an actor keeps of its report. */
interface FailureReporting {
  readonly failureReport?: FailureReport
  /** Not stored: a step is under way, which counts as lost after this time. */
  readonly failureReportUntilMs?: number
}

/** The part of a URI that readers of another mailbox may see, without a path. */
export const originOf = (uri: string): string => {
  const origin = parseUrl(uri)?.origin ?? "null"
  return origin === "null" ? "another service" : `${origin}/…`
}

/** The path of a mailbox of such a service, as its name is made; what follows may be a secret. */
const mailboxPath = /^(\/mailboxes\/[a-z0-9][a-z0-9-]{0,63})((?:~|%7[eE])[^/]*)?$/

/**
 * A recipient as readers of another mailbox may see it: a mailbox by its name, without a secret and
 * a query; of any other one the origin alone, since each part of its path may be a secret.
 */
export const recipientText = (uri: string): string => {
  const parsed = parseUrl(uri)
  const [, path, secret = ""] = mailboxPath.exec(parsed?.pathname ?? "") ?? []
  if (parsed === undefined || path === undefined) return originOf(uri)
  const isWhole = secret === "" && parsed.search === ""
  return `${parsed.origin}${path}${isWhole ? "" : "…"}`
}

/** The description of a report that a sent notification has not arrived at a recipient. */
export const undeliveredText = (failure: {
  /** What the notification is about, if its actor knows. */
  readonly about: string | undefined
  readonly isWithdrawal: boolean
  /** The recipient. */
  readonly to: string
  readonly problem: string
  /** How many recipients have failed, with this one. */
  readonly failed: number
  /** How many recipients there are. */
  readonly count: number
}): string => {
  const { about, count, failed, isWithdrawal, problem, to } = failure
  const named = about === undefined ? undefined : `“${about}”`
  const what = isWithdrawal
    ? `The withdrawal of ${named ?? "a notification"}`
    : named ?? "A notification"
  const others = count === 1
    ? ""
    : ` So far ${failed} of ${count} recipients ${failed === 1 ? "has" : "have"} failed; ` +
      "its page shows all."
  return `${what} was not delivered to ${recipientText(to)}: ${problem}.${others}`
}

/** Whether an actor may report a failure: one that may fail over and over reports once a day. */
export const mayReportAgain = (
  { failureReport }: FailureReporting,
  nowMs: number
): boolean =>
  // The clock may have been set back.
  failureReport === undefined || Math.abs(nowMs - failureReport.atMs) >= failureReportIntervalMs

/** A report that waits for its deposit. */
type WaitingReport = FailureReport & { readonly description: string }

/** Whether the report of an actor waits for its deposit. */
export const isReportWaiting = ({ failureReport }: FailureReporting): boolean =>
  isWaiting(failureReport)

const isWaiting = (report: FailureReport | undefined): report is WaitingReport =>
  report?.description !== undefined

/** The state without a step under way. */
const withoutStep = <State extends FailureReporting>(state: State): State => {
  const { failureReportUntilMs: _, ...others } = state
  // Only this optional property is missing.
  return others as unknown as State
}

/** The state with the time of its report alone, for {@link mayReportAgain}. */
const withReportTime = <State extends FailureReporting>(state: State, atMs: number): State =>
  withoutStep({ ...state, failureReport: { atMs } })

/**
 * The state without a report that waits, since what it says is over. If certainly nobody has got
 * it, as no deposit was begun, the next failure may be reported at once.
 */
export const withoutWaitingReport = <State extends FailureReporting>(state: State): State => {
  const { failureReport, ...others }: FailureReporting = state
  if (!isWaiting(failureReport)) return state
  return failureReport.to === undefined
    // Only this optional property is missing.
    ? withoutStep(others as unknown as State)
    : withReportTime(state, failureReport.atMs)
}

/** The state after the result of a step; undefined if the result is late or repeated. */
export const afterReportStep = <State extends FailureReporting>(
  state: State,
  progress: FailureReportProgress
): State | undefined => {
  const { failureReport }: FailureReporting = state
  if (!isWaiting(failureReport) || failureReport.atMs !== progress.atMs) return undefined
  if (progress._tag === "FailureReportSettled") return withReportTime(state, failureReport.atMs)
  return failureReport.to === undefined
    ? withoutStep({ ...state, failureReport: { ...failureReport, to: progress.to } })
    : undefined
}

/**
 * Begins the next step of a report that waits, unless one is under way. A lost or failed step is
 * repeated after as long as the report has waited, so that the pauses double.
 */
export const beginReportStep = <State extends FailureReporting>(
  state: State,
  nowMs: number,
  actions: { readonly push: (action: ReportFailure) => unknown }
): State => {
  const { failureReport, failureReportUntilMs = 0 }: FailureReporting = state
  if (!isWaiting(failureReport) || failureReportUntilMs > nowMs) return state
  const ageMs = nowMs - failureReport.atMs
  actions.push({
    _tag: "ReportFailure",
    ...failureReport,
    isOverdue: ageMs >= failureReportGiveUpMs
  })
  const pauseMs = Math.min(Math.max(ageMs, failureReportLeaseMs), failureReportRetryMaxMs)
  return { ...state, failureReportUntilMs: nowMs + pauseMs }
}
