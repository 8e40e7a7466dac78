/**
 * What an outgoing notification decides: each recipient is tried by the schedule until it has the
 * notification, refuses it or the schedule is exhausted; then all is kept for a while.
 */
import { append, become, type BehaviorTable, type Decision, type DecisionContext, stay,
  type Variant } from "../../runtime/index.ts"
import { attemptLeaseMs, attemptsAtOnceMax, cachedDocumentCharsMax, deferredHeldMs, deferredMinMs,
  recipientsInlineMax, resultsFoldedAt } from "../limits.ts"
import { type Schedule, waitMs } from "../outbound/index.ts"
import { deny, isOutdated, type Reason } from "../refusals.ts"
import type { Caller } from "../schemas.ts"
import { afterAttempt, againFrom, encodeResult, hasEnded, isNext, type Queued,
  statusOf } from "./attempts.ts"
import type { NotificationAction, NotificationMessage, NotificationReply, NotificationState,
  NotificationView, RecipientState, RunningAttempt } from "./protocol.ts"

export type NotificationDecision = Decision<
  NotificationState,
  NotificationReply,
  NotificationAction
>

/** The log items that may go: results that the record does not tell. */
const unfolded = ({ folded }: Queued, head: number): ReadonlyArray<number> =>
  Array.from({ length: Math.max(0, head - folded) }, (_, at) => folded + 1 + at)

/** Writes the state, with all that the log tells. */
const write = (state: Queued, { head }: DecisionContext): NotificationDecision => {
  const decision = become<NotificationState>({ ...state, folded: head })
  const results = unfolded(state, head)
  return results.length === 0 ? decision : decision.removeItems(...results)
}

/** Writes how one recipient stands. */
const writeResult = (state: Queued, at: number, context: DecisionContext): NotificationDecision =>
  state.recipients.length <= recipientsInlineMax || state.endedAtMs !== undefined ||
    context.head - state.folded >= resultsFoldedAt
    ? write(state, context)
    : append<NotificationState>(encodeResult(at, state)).becomeInMemory(state)

/** Removes the notification. */
export const remove = (state: Queued, { head, nowMs }: DecisionContext): NotificationDecision => {
  const { account, listingKey } = state
  return become<NotificationState>({ _tag: "Removed", account, removedAtMs: nowMs })
    .removeItems(1, ...unfolded(state, head))
    .setTimer(null)
    .perform<NotificationAction>({ _tag: "UpdateListing", listingKey, status: null })
}

/** So many recipients that are due and not among the busy ones, the longest due first. */
const firstDue = (
  { recipients }: Queued,
  busy: ReadonlySet<number>,
  room: number,
  nowMs: number
): ReadonlyArray<number> => {
  if (room === 0) return []
  const due: Array<number> = []
  const dueMs: Array<number> = []
  let isOrdered = true
  let lastMs = 0
  for (let at = 0; at < recipients.length; at++) {
    const recipient = recipients[at]
    if (recipient === undefined || hasEnded(recipient)) continue
    const { nextAtMs = nowMs } = recipient
    if (nextAtMs > nowMs || busy.has(at)) continue
    isOrdered &&= nextAtMs >= lastMs
    lastMs = nextAtMs
    due.push(at)
    dueMs[at] = nextAtMs
  }
  if (!isOrdered) due.sort((one, other) => (dueMs[one] ?? 0) - (dueMs[other] ?? 0))
  return due.length > room ? due.slice(0, room) : due
}

const begunAt = (recipients: ReadonlyArray<number>, nowMs: number): ReadonlyArray<RunningAttempt> =>
  recipients.map((recipient) => ({ recipient, untilMs: nowMs + attemptLeaseMs }))

/**
 * What is under way beside the attempt at `told`. After a reload that is not known: then what is
 * due may be, since this message is no timer, which would begin it.
 */
export const runningOf = (
  state: Queued,
  told: number | undefined,
  nowMs: number
): ReadonlyArray<RunningAttempt> => {
  const { running } = state
  if (running !== undefined) return running.filter(({ recipient }) => recipient !== told)
  const busy = new Set(told === undefined ? [] : [told])
  return begunAt(firstDue(state, busy, attemptsAtOnceMax - busy.size, nowMs), nowMs)
}

interface Begun {
  readonly started: ReadonlyArray<number>
  readonly running: ReadonlyArray<RunningAttempt>
  /** When there is something to do, if nothing comes before. */
  readonly nextAtMs: number
}

/** Begins what is due, as far as there is room. */
const begin = (state: Queued, nowMs: number): Begun => {
  const going = state.running?.filter(({ untilMs }) => untilMs > nowMs) ?? []
  const busy = new Set<number>()
  let attempts = 0
  let nextAtMs = Number.POSITIVE_INFINITY
  for (const { deferred, recipient, untilMs } of going) {
    busy.add(recipient)
    if (deferred !== true) attempts += 1
    if (untilMs < nextAtMs) nextAtMs = untilMs
  }
  const started = firstDue(state, busy, Math.max(0, attemptsAtOnceMax - attempts), nowMs)
  const running = started.length === 0 ? going : [...going, ...begunAt(started, nowMs)]
  if (started.length > 0) nextAtMs = Math.min(nextAtMs, nowMs + attemptLeaseMs)
  for (const recipient of state.recipients) {
    // What is due begins when another attempt has ended.
    const { nextAtMs: atMs = 0 } = recipient
    if (atMs > nowMs && atMs < nextAtMs && !hasEnded(recipient)) nextAtMs = atMs
  }
  return { started, running, nextAtMs }
}

const attemptAt = (state: Queued, at: number, document: string | undefined): NotificationAction => {
  const recipient = state.recipients[at]
  if (recipient === undefined) throw new RangeError(`there is no recipient ${at}`)
  const { account, chars, traceId } = state
  return {
    _tag: "Attempt",
    recipient: at,
    attempt: recipient.attempts + 1,
    to: recipient.to,
    traceId,
    account,
    document,
    chars
  }
}

/** What has changed, and so is written: nothing, how one recipient stands, or all. */
export type NotificationChange =
  | { readonly _tag: "Nothing" }
  | { readonly _tag: "Result"; readonly at: number }
  | { readonly _tag: "All"; readonly document?: string }

const written = (
  state: Queued,
  change: NotificationChange,
  context: DecisionContext
): NotificationDecision => {
  switch (change._tag) {
    case "Nothing":
      return stay<NotificationState>().becomeInMemory(state)
    case "Result":
      return writeResult(state, change.at, context)
    case "All":
      return change.document === undefined
        ? write(state, context)
        : become<NotificationState>(state).append(change.document)
  }
}

/** Goes on in `given`, some of whose recipients have not ended. */
export const goOn = (
  given: Queued,
  change: NotificationChange,
  context: DecisionContext
): NotificationDecision => {
  const { nowMs } = context
  const { nextAtMs, started, running } = begin(given, nowMs)
  const state: Queued = { ...given, running }
  const decision = written(state, change, context)
  const document = change._tag === "All" ? change.document : undefined
  const isSmall = given.chars <= cachedDocumentCharsMax
  for (const at of started) {
    decision.perform<NotificationAction>(attemptAt(state, at, isSmall ? document : undefined))
  }
  if (running.length === 0) return decision.setTimer(nextAtMs)
  // A timer that began something is past; what a request begins stores one.
  return (change._tag === "All" ? decision.setTimer(nowMs) : decision).deferTimer(nextAtMs)
}

/** All recipients have ended: it is kept for a while. */
export const end = (
  given: Queued,
  at: number,
  keepMs: number,
  context: DecisionContext
): NotificationDecision => {
  const { nowMs } = context
  const state: Queued = { ...given, endedAtMs: nowMs, running: [] }
  const { listingKey, recipients } = state
  return writeResult(state, at, context)
    .setTimer(nowMs + keepMs)
    .perform<NotificationAction>({
      _tag: "UpdateListing",
      listingKey,
      status: statusOf(recipients)
    })
}

/*
 * The course of a notification: which attempts begin, what is written, when it goes on. Pure.
 *
 * While attempts are under way the stored timer is past, and held: after a crash it fires at
 * once and all that is due is begun again. Otherwise it is stored for the next time.
 */

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
  const { account, document, listingKey, requestId, to, traceId } = message
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
    listingKey,
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
  const held: RunningAttempt = { recipient, untilMs, deferred: true }
  return { ...state, running: [...runningOf(state, recipient, nowMs), held] }
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
      running: runningOf(state, at, nowMs)
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
    running: runningOf(state, undefined, nowMs)
  }
  return goOn(next, { _tag: "All" }, context)
    .perform<NotificationAction>({
      _tag: "UpdateListing",
      listingKey: state.listingKey,
      status: "waiting"
    })
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
  TimerFired: (state, _message, context) => {
    if (state.endedAtMs === undefined) return goOn(state, { _tag: "Nothing" }, context)
    const untilMs = state.endedAtMs + keepMs
    return context.nowMs < untilMs
      ? stay<NotificationState>().setTimer(untilMs)
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
    TimerFired: () => stay<NotificationState>().setTimer(null)
  },
  Queued: queued(schedule, keepMs),
  Removed: {
    Create: () => deny("Taken"),
    Describe: ({ account }, { caller }) => deny(denied(account, caller) ?? "Gone"),
    Attempted: () => stay(),
    Retry: ({ account }, { caller }) => deny(denied(account, caller) ?? "Gone"),
    Delete: ({ account }: Variant<NotificationState, "Removed">, { caller }) =>
      deny(denied(account, caller) ?? "Gone"),
    TimerFired: () => stay<NotificationState>().setTimer(null)
  }
})
