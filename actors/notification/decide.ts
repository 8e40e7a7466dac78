/**
 * What an outgoing notification decides: each recipient is tried by the schedule until it has the
 * notification, refuses it or the schedule is exhausted; then all is kept for a while.
 */
import { stay } from "../../runtime/index.ts"
import type { BehaviorTable, Variant } from "../../runtime/index.ts"
import type { Caller } from "../binding.ts"
import { waitMs } from "../delivery/schedule.ts"
import type { Schedule } from "../delivery/schedule.ts"
import { deferredHeldMs, deferredMinMs } from "../limits.ts"
import { deny, isOutdated } from "../reasons.ts"
import type { Reason } from "../reasons.ts"
import { afterAttempt, againFrom, hasEnded, isNext, type Queued, statusOf } from "./attempts.ts"
import { end, goOn, remove, underWayOf } from "./course.ts"
import type {
  NotificationAction,
  NotificationMessage,
  NotificationReply,
  NotificationState,
  NotificationView,
  RecipientState,
  UnderWay
} from "./protocol.ts"

type Notifications = BehaviorTable<
  NotificationState,
  NotificationMessage,
  NotificationReply,
  NotificationAction
>

const done: NotificationReply = { _tag: "Done" }

const opening = "<notification>"
const closing = "</notification>"

/** The fragment of a document, as a mailbox stores it; undefined when it is not wrapped so. */
export const fragmentOf = (document: string): string | undefined =>
  document.startsWith(opening) && document.endsWith(closing)
    ? document.slice(opening.length, -closing.length)
    : undefined

/** Why the caller may not have it; undefined when it may. */
const denied = (of: string, { account, admin }: Caller): Reason | undefined => {
  if (admin || account === of) return undefined
  return account === undefined ? "Unauthenticated" : "Forbidden"
}

const created = ({ createdAtMs }: Queued, repeated: boolean): NotificationReply => ({
  _tag: "Created",
  createdAtMs,
  repeated
})

const view = ({ account, createdAtMs, recipients, version }: Queued): NotificationView => ({
  account,
  createdAtMs,
  status: statusOf(recipients),
  recipients,
  version
})

const create = (schedule: Schedule): Notifications["Absent"]["Create"] => (_, message, context) => {
  const { account, document, listedAs, requestId, to, traceId } = message
  if (to.length === 0) return deny("Invalid", "a notification has at least one recipient")
  if (fragmentOf(document) === undefined) return deny("Invalid", "this is no notification")
  const { head, nowMs } = context
  // A factor of one: the first attempt is due as the schedule says, to the millisecond.
  const nextAtMs = nowMs + (waitMs(schedule, 0, 0.5) ?? 0)
  const state: Queued = {
    _tag: "Queued",
    account,
    requestId,
    createdAtMs: nowMs,
    listedAs,
    traceId,
    recipients: to.map((uri) => ({ to: uri, status: "waiting", attempts: 0, tries: 0, nextAtMs })),
    version: 1,
    folded: head + 1,
    chars: document.length
  }
  return goOn(state, { _tag: "All", document }, context).reply(created(state, false))
}

/** The state with an attempt that was put off for a short time; undefined: it is written. */
const putOff = (
  state: Queued,
  { outcome, recipient }: Variant<NotificationMessage, "Attempted">,
  nowMs: number
): Queued | undefined => {
  if (outcome._tag !== "Deferred" || outcome.untilMs > nowMs + deferredHeldMs) return undefined
  const untilMs = Math.max(outcome.untilMs, nowMs + deferredMinMs)
  const held: UnderWay = { recipient, untilMs, deferred: true }
  return { ...state, underWay: [...underWayOf(state, recipient, nowMs), held] }
}

const attempted =
  (schedule: Schedule, keepMs: number): Notifications["Queued"]["Attempted"] =>
  (state, message, context) => {
    const { attempt, recipient: at } = message
    const { nowMs } = context
    const before = state.recipients[at]
    // It came late or twice.
    if (before === undefined || !isNext(before, attempt)) return stay()
    const shortly = putOff(state, message, nowMs)
    if (shortly !== undefined) return goOn(shortly, { _tag: "Nothing" }, context)
    const after = afterAttempt(schedule, before, message, nowMs)
    const next: Queued = {
      ...state,
      recipients: state.recipients.with(at, after),
      version: state.version + 1,
      underWay: underWayOf(state, at, nowMs)
    }
    return hasEnded(after) && next.recipients.every(hasEnded)
      ? end(next, at, keepMs, context)
      : goOn(next, { _tag: "Result", at }, context)
  }

const isFailed = ({ status }: RecipientState): boolean => status === "failed"

const retry: Notifications["Queued"]["Retry"] = (state, { caller }, context) => {
  const reason = denied(state.account, caller)
  if (reason !== undefined) return deny(reason)
  const recipients = state.recipients.filter(isFailed).length
  const reply: NotificationReply = { _tag: "Retried", recipients }
  if (recipients === 0) return stay().reply(reply)
  const { nowMs } = context
  const { endedAtMs: _, ...open } = state
  const next: Queued = {
    ...open,
    recipients: state.recipients.map((one) => isFailed(one) ? againFrom(one, nowMs) : one),
    version: state.version + 1,
    underWay: underWayOf(state, undefined, nowMs)
  }
  return goOn(next, { _tag: "All" }, context)
    .perform<NotificationAction>({ _tag: "Note", listedAs: state.listedAs, status: "waiting" })
    .reply(reply)
}

const queued = (schedule: Schedule, keepMs: number): Notifications["Queued"] => ({
  Create: (state, { account, requestId }) =>
    requestId === state.requestId && account === state.account
      ? stay().reply(created(state, true))
      : deny("Taken"),
  Describe: (state, { caller }) => {
    const reason = denied(state.account, caller)
    return reason === undefined
      ? stay().reply<NotificationReply>({ _tag: "Described", view: view(state) })
      : deny(reason)
  },
  Attempted: attempted(schedule, keepMs),
  Retry: retry,
  Delete: (state, message, context) => {
    const reason = denied(state.account, message.caller)
    if (reason !== undefined) return deny(reason)
    if (isOutdated(state, message)) return deny("PreconditionFailed")
    return remove(state, context).reply(done)
  },
  WakeUp: (state, _message, context) => {
    if (state.endedAtMs === undefined) return goOn(state, { _tag: "Nothing" }, context)
    const untilMs = state.endedAtMs + keepMs
    return context.nowMs < untilMs
      ? stay<NotificationState>().wake(untilMs)
      : remove(state, context)
  }
})

/** The notification's table, under the service's schedule; it is kept so long after its end. */
export const notificationTable = (schedule: Schedule, keepMs: number): Notifications => ({
  Absent: {
    Create: create(schedule),
    Describe: () => deny("NotFound"),
    Attempted: () => stay(),
    Retry: () => deny("NotFound"),
    Delete: () => deny("NotFound"),
    WakeUp: () => stay<NotificationState>().wake(null)
  },
  Queued: queued(schedule, keepMs),
  Removed: {
    Create: () => deny("Taken"),
    Describe: ({ account }, { caller }) => deny(denied(account, caller) ?? "Gone"),
    Attempted: () => stay(),
    Retry: ({ account }, { caller }) => deny(denied(account, caller) ?? "Gone"),
    Delete: ({ account }: Variant<NotificationState, "Removed">, { caller }) =>
      deny(denied(account, caller) ?? "Gone"),
    WakeUp: () => stay<NotificationState>().wake(null)
  }
})
