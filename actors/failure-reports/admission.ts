/**
 * Which failure reports an account gets: so many of each cause in a time, so that many failures do
 * not fill its mailbox, and those that others cause do not use up the share of its own. The
 * decision is that of the account's actor. Pure.
 */
import { Schema } from "effect"
import { failureReportsPerHourMax, readersReportsPerDayMax } from "../limits.ts"
import { Count } from "../schemas.ts"

/**
 * `outgoing`: a notification that the account has sent; `registration`: a registration that the
 * account has made at a mailbox of its own; `reader`: one that a secret of the mailbox has allowed.
 * Whoever has such a secret decides when its callback fails.
 */
export const FailureCause = Schema.Literals(["outgoing", "registration", "reader"])

export type FailureCause = typeof FailureCause.Type

/** The mailbox that receives the failure reports of an account, and the last admitted reports. */
export const FailureReports = Schema.Struct({
  /** Its name; left out for none. */
  mailbox: Schema.optionalKey(Schema.String),
  /** Those that count against a share, the oldest first. */
  admitted: Schema.Array(Schema.Struct({ id: Schema.String, atMs: Count, cause: FailureCause }))
})

export type FailureReports = typeof FailureReports.Type

/**
 * Admits the failure report of this id. A repetition gets the same reply for as long as the report
 * counts against its share.
 */
export const AdmitFailureReport = Schema.TaggedStruct("AdmitFailureReport", {
  id: Schema.String,
  cause: FailureCause
})

export type AdmitFailureReportReply =
  /** `isLast`: there is no room for another one of this cause. */
  | { readonly _tag: "FailureReportAdmitted"; readonly isLast: boolean }
  /** The account has no mailbox for reports any more, or has had as many of this cause. */
  | { readonly _tag: "FailureReportRejected" }

const hourMs = 3_600_000

/** How many reports of a cause are admitted in which time. */
const shareOf = (cause: FailureCause): { readonly max: number; readonly withinMs: number } =>
  cause === "reader"
    ? { max: readersReportsPerDayMax, withinMs: 24 * hourMs }
    : { max: failureReportsPerHourMax, withinMs: hourMs }

/** The setting of an account with this mailbox, or none. What was admitted counts on. */
export const withReportsMailbox = (
  before: FailureReports | undefined,
  mailbox: string | undefined
): FailureReports => ({
  admitted: before?.admitted ?? [],
  ...mailbox === undefined ? {} : { mailbox }
})

/** The reply, and the reports of the account after it if they have changed. */
export const admitFailureReport = (
  reports: FailureReports | undefined,
  { cause, id }: Pick<typeof AdmitFailureReport.Type, "cause" | "id">,
  nowMs: number
): { readonly reply: AdmitFailureReportReply; readonly next?: FailureReports } => {
  if (reports?.mailbox === undefined) return { reply: { _tag: "FailureReportRejected" } }
  // A clock that was set back must not hold reports back for longer than the time of the share.
  const counted = reports.admitted.filter(({ atMs, cause: of }) =>
    atMs <= nowMs && atMs > nowMs - shareOf(of).withinMs
  )
  const ofCause = counted.filter((one) => one.cause === cause)
  const { max } = shareOf(cause)
  const at = ofCause.findIndex((one) => one.id === id)
  if (at >= 0) return { reply: { _tag: "FailureReportAdmitted", isLast: at + 1 >= max } }
  if (ofCause.length >= max) return { reply: { _tag: "FailureReportRejected" } }
  return {
    reply: { _tag: "FailureReportAdmitted", isLast: ofCause.length + 1 >= max },
    next: { ...reports, admitted: [...counted, { id, atMs: nowMs, cause }] }
  }
}
