/** What the tests of the notification's table decide on. */
import { failureReportsFormat } from "../../actors/failure-reports/report.ts"
import type { Queued } from "../../actors/notification/attempts.ts"
import { notificationTable } from "../../actors/notification/decide.ts"
import type { NotificationAction, NotificationMessage, NotificationReply, NotificationState,
  RecipientState } from "../../actors/notification/protocol.ts"
import type { DecisionContext } from "../../runtime/index.ts"
import { decider, nowMs } from "./cells.ts"

export const retentionMs = 1_000_000
export const schedule = [0, 5_000, 60_000]
export const table = notificationTable(schedule, retentionMs)
export const decideBy = decider<
  NotificationState,
  NotificationMessage,
  NotificationReply,
  NotificationAction
>(table)
export type Decided = ReturnType<typeof decideBy>

/** Decides; unless it is said otherwise, all that is logged is the document. */
export const decide = (
  state: NotificationState,
  message: NotificationMessage,
  context: Partial<DecisionContext> = {}
): Decided => decideBy(state, message, { head: state._tag === "Queued" ? 1 : 0, ...context })

export const document = "<notification><item/></notification>"
export const owner = { account: "alice", admin: false }
export const admin = { account: "root", admin: true }
export const other = { account: "mallory", admin: false }
export const nobody = { admin: false }
export const uri = (n: number): string => `https://example.org/${n}`

export const create = (
  to: ReadonlyArray<string>
): Extract<NotificationMessage, { readonly _tag: "Create" }> => ({
  _tag: "Create",
  requestId: "r1",
  account: "alice",
  listingKey: "alice/1",
  traceId: "0".repeat(31) + "1",
  document,
  to
})
export const absent: NotificationState = { _tag: "Absent" }
export const removed: NotificationState = { _tag: "Removed", account: "alice", removedAtMs: nowMs }

export const isQueued = (state: NotificationState | undefined): Queued => {
  if (state?._tag !== "Queued") throw new Error("it is not queued")
  return state
}
export const stateOf = (decision: Decided): Queued => isQueued(decision.nextState)
export const created = (count: number): Queued =>
  stateOf(decide(absent, create(Array.from({ length: count }, (_, n) => uri(n)))))

/** All of a state's recipients with these properties too. */
export const where = (state: Queued, some: Partial<RecipientState>): Queued => ({
  ...state,
  recipients: state.recipients.map((one) => ({ ...one, ...some }))
})
export const reloaded = (state: Queued): Queued => {
  const { running: _, ...stored } = state
  return stored
}

export type Attempted = Extract<NotificationMessage, { readonly _tag: "Attempted" }>
export const attempted = (
  outcome: Attempted["outcome"],
  recipient = 0,
  attempt = 1
): Attempted => ({ _tag: "Attempted", recipient, attempt, outcome, random: 0.5 })
export const delivered: Attempted["outcome"] = { _tag: "Delivered", code: 202, location: uri(9) }
export const refused: Attempted["outcome"] = {
  _tag: "PermanentFailure",
  code: 410,
  problem: "answered 410"
}
export const faulted: Attempted["outcome"] = {
  _tag: "RetryableFailure",
  code: 503,
  problem: "answered 503"
}
export const deferred: Attempted["outcome"] = { _tag: "Deferred", untilMs: nowMs + 190_000 }

export const timerFired: NotificationMessage = { _tag: "TimerFired" }
export const describing = (caller: typeof owner | typeof nobody): NotificationMessage => ({
  _tag: "Describe",
  caller
})
export const retrying = (caller: typeof owner | typeof nobody): NotificationMessage => ({
  _tag: "Retry",
  caller
})
export const deleting = (caller: typeof owner | typeof nobody): NotificationMessage => ({
  _tag: "Delete",
  caller
})
/** A follow-up: without a document it is a withdrawal. */
export const following = (
  caller: typeof owner | typeof nobody,
  replacing?: string,
  requestId = "f1"
): NotificationMessage => ({
  _tag: "FollowUp",
  caller,
  requestId,
  ...replacing === undefined ? {} : { document: replacing }
})
export const begun = ({ actions = [] }: Decided): ReadonlyArray<number> =>
  actions.flatMap((action) => action._tag === "Attempt" ? [action.recipient] : [])
export const notes = ({ actions = [] }: Decided): ReadonlyArray<unknown> =>
  actions.filter(({ _tag }) => _tag === "UpdateListing")
export const note = (status: string | null) => ({
  _tag: "UpdateListing",
  listingKey: "alice/1",
  status
})

export const one = created(1)
export const two = created(2)
export const ended = stateOf(decide(one, attempted(refused)))

/** Every node knows failure reports, and the account may have a mailbox for them. */
export const reporting = { format: failureReportsFormat }
export const reported = (recipient = 0, attempt = 1): Attempted => ({
  ...attempted(refused, recipient, attempt),
  mayReport: true
})
const reportsTo = { account: "alice", mailbox: "box" }
export const addressed: NotificationMessage = {
  _tag: "FailureReportAddressed",
  atMs: nowMs,
  to: reportsTo
}
export const settled: Extract<NotificationMessage, { readonly _tag: "FailureReportSettled" }> = {
  _tag: "FailureReportSettled",
  atMs: nowMs
}
export const report = {
  _tag: "ReportFailure",
  account: "alice",
  atMs: nowMs,
  description: "A notification was not delivered to https://example.org/…: answered 410.",
  isOverdue: false
} satisfies NotificationAction
export const depositOf = (first: object): unknown => ({ ...first, to: reportsTo })
