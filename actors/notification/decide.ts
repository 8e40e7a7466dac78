/**
 * The decisions of an outgoing notification (protocol §1.3). Each recipient is tried by the
 * schedule until the notification is delivered, fails permanently, or the schedule is exhausted.
 * When all recipients have ended, the notification is kept for its retention.
 *
 * While attempts run, the stored timer is past and deferred in memory: after a crash it fires at
 * once, and whatever is due is repeated. Otherwise the timer is stored for the next attempt.
 */
import { append, become, type BehaviorTable, type Decision, type DecisionContext, stay,
  type Variant } from "../../runtime/index.ts"
import { attemptLeaseMs, attemptsAtOnceMax, cachedDocumentCharsMax, cleanedItemsMax,
  deferredInMemoryMs, deferredMinMs, describedRecipientsMax, outdatedItemsMin, recipientsInlineMax,
  recipientsMax, removalsMax } from "../limits.ts"
import { type Schedule, waitMs } from "../outbound/index.ts"
import { deny, denyEach, isOutdated, notOwner } from "../refusals.ts"
import { afterAttempt, encodeRecipient, hasEnded, isNext, type Queued, restarted,
  statusOf } from "./attempts.ts"
import type { NotificationAction, NotificationMessage, NotificationReply, NotificationState,
  NotificationView, RecipientState, RunningAttempt } from "./protocol.ts"

type Notifications = BehaviorTable<
  NotificationState,
  NotificationMessage,
  NotificationReply,
  NotificationAction
>

type NotificationDecision = Decision<NotificationState, NotificationReply, NotificationAction>

type Attempted = Variant<NotificationMessage, "Attempted">

type Removed = Variant<NotificationState, "Removed">

const done: NotificationReply = { _tag: "Done" }

/** The table, under the service's schedule; an ended notification is kept for `retentionMs`. */
export const notificationTable = (schedule: Schedule, retentionMs: number): Notifications => ({
  Absent: {
    Create: create(schedule),
    ...denyEach("NotFound", "Describe", "Retry", "Delete"),
    Attempted: () => stay(),
    TimerFired: () => stay<NotificationState>().setTimer(null)
  },
  Queued: {
    Create: (state, { account, requestId }) =>
      requestId === state.requestId && account === state.account
        ? stay().reply(created(state, true))
        : deny("Taken"),
    Describe: (state, { caller, from = 0 }) => {
      const reason = notOwner(state.account, caller, true)
      return reason === undefined
        ? stay().reply<NotificationReply>({ _tag: "Described", view: viewOf(state, from) })
        : deny(reason)
    },
    Attempted: attempted(schedule, retentionMs),
    Retry: retry,
    Delete: (state, message, context) => {
      const reason = notOwner(state.account, message.caller, true)
      if (reason !== undefined) return deny(reason)
      if (isOutdated(state, message)) return deny("PreconditionFailed")
      return remove(state, context).reply(done)
    },
    TimerFired: (state, _message, context) => {
      if (state.endedAtMs === undefined) return proceed(state, { _tag: "Nothing" }, context)
      const untilMs = state.endedAtMs + retentionMs
      return context.nowMs < untilMs
        ? stay<NotificationState>().setTimer(untilMs)
        : remove(state, context)
    }
  },
  Removed: {
    Create: () => deny("Taken"),
    Describe: gone,
    Attempted: () => stay(),
    Retry: gone,
    Delete: gone,
    TimerFired: (state, _message, context) => removeRest(state, context)
  }
})

const gone = (
  { account }: Removed,
  { caller }: Variant<NotificationMessage, "Describe" | "Retry" | "Delete">
) => deny(notOwner(account, caller, true) ?? "Gone")

const create = (schedule: Schedule): Notifications["Absent"]["Create"] => (_, message, context) => {
  const { account, document, listingKey, requestId, to, traceId } = message
  if (to.length === 0) return deny("Invalid", "a notification has at least one recipient")
  if (to.length > recipientsMax) return deny("Invalid", `at most ${recipientsMax} recipients`)
  if (fragmentOf(document) === undefined) return deny("Invalid", "this is no notification")
  const { head, nowMs } = context
  // The middle of the jitter: the first attempt is due exactly as the schedule says.
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
    ...to.length > recipientsInlineMax ? { listed: to.length, items: [] } : {},
    cleaned: head + 1,
    chars: document.length
  }
  return proceed(state, { _tag: "Many", changed: [...to.keys()], document }, context).reply(
    created(state, false)
  )
}

const openingTag = "<notification>"

const closingTag = "</notification>"

/** The fragment of a document, as a mailbox stores it; undefined if the document has none. */
export const fragmentOf = (document: string): string | undefined =>
  document.startsWith(openingTag) && document.endsWith(closingTag)
    ? document.slice(openingTag.length, -closingTag.length)
    : undefined

const created = ({ createdAtMs }: Queued, repeated: boolean): NotificationReply => ({
  _tag: "Created",
  createdAtMs,
  repeated
})

const viewOf = (
  { account, createdAtMs, recipients, version }: Queued,
  from: number
): NotificationView => ({
  account,
  createdAtMs,
  status: statusOf(recipients),
  recipients: recipients.slice(from, from + describedRecipientsMax),
  count: recipients.length,
  version
})

const retry: Notifications["Queued"]["Retry"] = (state, { caller, requestId }, context) => {
  const reason = notOwner(state.account, caller, true)
  if (reason !== undefined) return deny(reason)
  const recipients = state.recipients.filter(isFailed).length
  const isRepeated = requestId !== undefined && requestId === state.retriedBy
  const isSent = !isRepeated && statusOf(state.recipients) === "sent"
  const reply: NotificationReply = { _tag: "Retried", recipients, isSent }
  if (recipients === 0) return stay().reply(reply)
  const { nowMs } = context
  const { endedAtMs: _, ...open } = state
  const next: Queued = {
    ...open,
    recipients: state.recipients.map((one) => isFailed(one) ? restarted(one, nowMs) : one),
    version: state.version + 1,
    ...requestId === undefined ? {} : { retriedBy: requestId },
    running: runningBeside(state, undefined, nowMs)
  }
  const changed = [...state.recipients.keys()].filter((at) =>
    next.recipients[at] !== state.recipients[at]
  )
  return proceed(next, { _tag: "Many", changed }, context)
    .perform<NotificationAction>({
      _tag: "UpdateListing",
      listingKey: state.listingKey,
      status: "waiting"
    })
    .reply(reply)
}

const isFailed = ({ status }: RecipientState): boolean => status === "failed"

const attempted =
  (schedule: Schedule, retentionMs: number): Notifications["Queued"]["Attempted"] =>
  (state, message, context) => {
    const { attempt, recipient: at } = message
    const { nowMs } = context
    const before = state.recipients[at]
    // The message is late or repeated.
    if (before === undefined || !isNext(before, attempt)) return stay()
    const deferred = deferredInMemory(state, message, nowMs)
    if (deferred !== undefined) return proceed(deferred, { _tag: "Nothing" }, context)
    const after = afterAttempt(schedule, before, message, nowMs)
    const next: Queued = {
      ...state,
      recipients: state.recipients.with(at, after),
      version: state.version + 1,
      running: runningBeside(state, at, nowMs)
    }
    return hasEnded(after) && next.recipients.every(hasEnded)
      ? end(next, at, retentionMs, context)
      : proceed(next, { _tag: "Result", at }, context)
  }

/** The state with an attempt that is deferred for a short time; undefined if that is stored. */
const deferredInMemory = (
  state: Queued,
  { outcome, recipient }: Attempted,
  nowMs: number
): Queued | undefined => {
  if (outcome._tag !== "Deferred" || outcome.untilMs > nowMs + deferredInMemoryMs) return undefined
  const untilMs = Math.max(outcome.untilMs, nowMs + deferredMinMs)
  const deferred: RunningAttempt = { recipient, untilMs, deferred: true }
  return { ...state, running: [...runningBeside(state, recipient, nowMs), deferred] }
}

/**
 * The attempts that run beside the one at `recipient`. After a reload they are unknown: then all
 * that is due may be running, since only a timer begins attempts and this message is none.
 */
const runningBeside = (
  state: Queued,
  recipient: number | undefined,
  nowMs: number
): ReadonlyArray<RunningAttempt> => {
  const { running } = state
  if (running !== undefined) return running.filter((one) => one.recipient !== recipient)
  const busy = new Set(recipient === undefined ? [] : [recipient])
  return leased(firstDue(state, busy, attemptsAtOnceMax - busy.size, nowMs), nowMs)
}

/** The part of the state that has changed and is written. */
type NotificationChange =
  | { readonly _tag: "Nothing" }
  /** The state of one recipient. */
  | { readonly _tag: "Result"; readonly at: number }
  | {
    readonly _tag: "Many"
    readonly changed: ReadonlyArray<number>
    readonly document?: string
  }

/** Begins the due attempts and sets the timer for the rest; some recipients have not ended. */
const proceed = (
  current: Queued,
  change: NotificationChange,
  context: DecisionContext
): NotificationDecision => {
  const { nowMs } = context
  const { nextTimerMs, running, started } = beginDue(current, nowMs)
  const state: Queued = { ...current, running }
  const decision = write(state, change, context)
  const document = change._tag === "Many" ? change.document : undefined
  const isSmall = current.chars <= cachedDocumentCharsMax
  for (const at of started) {
    decision.perform<NotificationAction>(attemptAt(state, at, isSmall ? document : undefined))
  }
  if (running.length === 0) return decision.setTimer(nextTimerMs)
  // A timer that began attempts is past already; a request must store one.
  return (change._tag === "Many" ? decision.setTimer(nowMs) : decision).deferTimer(nextTimerMs)
}

interface Begun {
  readonly started: ReadonlyArray<number>
  readonly running: ReadonlyArray<RunningAttempt>
  /** When there is something to do, if no message comes before. */
  readonly nextTimerMs: number
}

/** Begins the due attempts, up to the limit of attempts at once. */
const beginDue = (state: Queued, nowMs: number): Begun => {
  const current = state.running?.filter(({ untilMs }) => untilMs > nowMs) ?? []
  const busy = new Set<number>()
  let attempts = 0
  let nextTimerMs = Number.POSITIVE_INFINITY
  for (const { deferred, recipient, untilMs } of current) {
    busy.add(recipient)
    if (deferred !== true) attempts += 1
    if (untilMs < nextTimerMs) nextTimerMs = untilMs
  }
  const started = firstDue(state, busy, Math.max(0, attemptsAtOnceMax - attempts), nowMs)
  const running = started.length === 0 ? current : [...current, ...leased(started, nowMs)]
  if (started.length > 0) nextTimerMs = Math.min(nextTimerMs, nowMs + attemptLeaseMs)
  for (const recipient of state.recipients) {
    // A recipient that is due now begins when another attempt has ended.
    const { nextAtMs: atMs = 0 } = recipient
    if (atMs > nowMs && atMs < nextTimerMs && !hasEnded(recipient)) nextTimerMs = atMs
  }
  return { started, running, nextTimerMs }
}

/** The recipients that are due and not busy, the longest due first; `max` at most. */
const firstDue = (
  { recipients }: Queued,
  busy: ReadonlySet<number>,
  max: number,
  nowMs: number
): ReadonlyArray<number> => {
  if (max === 0) return []
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
  return due.length > max ? due.slice(0, max) : due
}

const leased = (
  recipients: ReadonlyArray<number>,
  nowMs: number
): ReadonlyArray<RunningAttempt> =>
  recipients.map((recipient) => ({ recipient, untilMs: nowMs + attemptLeaseMs }))

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

const write = (
  state: Queued,
  change: NotificationChange,
  context: DecisionContext
): NotificationDecision => {
  switch (change._tag) {
    case "Nothing":
      return stay<NotificationState>().becomeInMemory(state)
    case "Result":
      return writeRecipients(state, [change.at], context, false)
    case "Many":
      return writeRecipients(state, change.changed, context, true, change.document)
  }
}

/**
 * Writes the document and the recipients that have changed: in the record if there are a few, else
 * as log items, and then the record only if `isWhole`. When most items are outdated, it removes the
 * next ones, and appends those again that still count.
 */
const writeRecipients = (
  state: Queued,
  changed: ReadonlyArray<number>,
  { head }: DecisionContext,
  isWhole: boolean,
  document?: string
): NotificationDecision => {
  const decision = document === undefined
    ? stay<NotificationState>()
    : append<NotificationState>(document)
  const { cleaned, listed } = state
  if (listed === undefined) return decision.become(state)
  const items = [...state.items ?? []]
  let last = document === undefined ? head : head + 1
  const appendItem = (at: number): void => {
    decision.append(encodeRecipient(at, state))
    items[at] = ++last
  }
  for (const at of changed) appendItem(at)
  if (last - cleaned <= 2 * listed + outdatedItemsMin) {
    const next = { ...state, items }
    return isWhole ? decision.become(next) : decision.becomeInMemory(next)
  }
  const upTo = Math.min(cleaned + cleanedItemsMax, head)
  for (const [at, n] of items.entries()) if (n <= upTo) appendItem(at)
  return decision.become({ ...state, items, cleaned: upTo })
    .removeItems(...numbers(cleaned + 1, upTo))
}

const numbers = (first: number, last: number): ReadonlyArray<number> =>
  Array.from({ length: Math.max(0, last - first + 1) }, (_, at) => first + at)

/** All recipients have ended. */
const end = (
  current: Queued,
  at: number,
  retentionMs: number,
  context: DecisionContext
): NotificationDecision => {
  const { nowMs } = context
  const state: Queued = { ...current, endedAtMs: nowMs, running: [] }
  const { listingKey, recipients } = state
  const status = statusOf(recipients)
  return writeRecipients(state, [at], context, true)
    .setTimer(nowMs + retentionMs)
    .perform<NotificationAction>({ _tag: "UpdateListing", listingKey, status })
}

const remove = (state: Queued, context: DecisionContext): NotificationDecision => {
  const { account, cleaned, listingKey } = state
  const removed: Removed = { _tag: "Removed", account, removedAtMs: context.nowMs, cleaned }
  return removeRest(removed, context)
    .removeItems(1)
    .perform<NotificationAction>({ _tag: "UpdateListing", listingKey, status: null })
}

/** Removes the next log items, and comes back for the rest. */
const removeRest = (state: Removed, { head, nowMs }: DecisionContext): NotificationDecision => {
  const { cleaned, ...kept } = state
  if (cleaned === undefined) return stay<NotificationState>().setTimer(null)
  const upTo = Math.min(cleaned + removalsMax - 1, head)
  const next = upTo < head ? { ...kept, cleaned: upTo } : kept
  return become<NotificationState>(next)
    .removeItems(...numbers(cleaned + 1, upTo))
    .setTimer(upTo < head ? nowMs : null)
}
