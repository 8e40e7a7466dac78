/**
 * The decisions of an outgoing notification (protocol §1.3). The actor makes attempts at each
 * recipient by the schedule, until one delivers, one fails permanently, or the schedule ends. When
 * all recipients have ended, the notification is kept for its retention.
 *
 * While attempts run, the stored timer is in the past and deferred in memory. So after a crash it
 * fires at once, and the actor repeats the attempts that are due. Otherwise the stored timer has
 * the time of the next attempt.
 */
import { append, become, type BehaviorTable, type Decision, type DecisionContext, stay,
  type Variant } from "../../runtime/index.ts"
import { attemptLeaseMs, attemptsAtOnceMax, cachedDocumentCharsMax, cleanedItemsMax,
  deferredInMemoryMs, deferredMinMs, describedRecipientsMax, followUpsMax, idempotencyRetentionMs,
  keyedRetriesMax, outdatedItemsMin, recipientsInlineMax, recipientsMax,
  removalsMax } from "../limits.ts"
import { afterReportStep, beginReportStep, type FailureReport, failureReportsFormat,
  isReportWaiting, undeliveredText } from "../failure-reports/index.ts"
import { type Schedule, waitMs } from "../outbound/index.ts"
import { deny, denyEach, isOutdated, notOwner } from "../refusals.ts"
import { attemptItems, keptAttempt } from "./attempt-log.ts"
import { afterAttempt, afterRetry, encodeRecipient, hasEnded, isNext, type Queued, recipientsAt,
  type ReplayStart, startReplay, statusOf } from "./attempts.ts"
import { aboutAt, aboutIn, afterEarlier, afterFollowUp, editionOf, isWithdrawn, relayFollowUpOf,
  withdrawalFragment } from "./follow-ups.ts"
import { activeHolds, afterHeld, heldOf, holdsEndMs, mayRelease, pausesFormat, quietHolds,
  withoutHolds } from "./holds.ts"
import type { NotificationAction, NotificationMessage, NotificationReply, NotificationState,
  NotificationView, RecipientState, RunningAttempt, SenderFollowUp } from "./protocol.ts"

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

/** The table for this retry schedule. An ended notification is kept for `retentionMs`. */
export const notificationTable = (schedule: Schedule, retentionMs: number): Notifications => ({
  Absent: {
    Create: create(schedule),
    ...denyEach("NotFound", "Describe", "Release", "Retry", "FollowUp", "Delete"),
    Attempted: () => stay(),
    AttemptHeld: () => stay(),
    FailureReportAddressed: () => stay(),
    FailureReportSettled: () => stay(),
    TimerFired: () => stay<NotificationState>().setTimer(null)
  },
  Queued: {
    Create: (state, { account, requestId }) =>
      requestId === state.requestId && account === state.account
        ? stay().reply(created(state, true))
        : deny("Taken"),
    Describe: describe,
    Attempted: attempted(schedule, retentionMs),
    AttemptHeld: attemptHeld,
    Release: release,
    FailureReportAddressed: reportStepEnded(retentionMs),
    FailureReportSettled: reportStepEnded(retentionMs),
    Retry: retry,
    FollowUp: followUp(retentionMs),
    Delete: (state, message, context) => {
      const reason = notOwner(state.account, message.caller, true)
      if (reason !== undefined) return deny(reason)
      if (isOutdated(state, message)) return deny("PreconditionFailed")
      return remove(state, context).reply(done)
    },
    TimerFired: (state, _message, context) => {
      if (state.endedAtMs === undefined) {
        const decision = proceed(state, { _tag: "Nothing" }, context)
        // Readers of the listing take the hint `sent` as final: after a crash it may be outdated.
        return mayHintSent(state) ? hintWaiting(decision, state) : decision
      }
      const untilMs = state.endedAtMs + retentionMs
      // Its end would drop a report that waits, which is not for ever.
      return context.nowMs < untilMs || isReportWaiting(state)
        ? rest(state, undefined, untilMs, context)
        : remove(state, context)
    }
  },
  Removed: {
    Create: () => deny("Taken"),
    Describe: gone,
    Attempted: () => stay(),
    AttemptHeld: () => stay(),
    Release: () => deny("Gone"),
    FailureReportAddressed: () => stay(),
    FailureReportSettled: () => stay(),
    Retry: gone,
    FollowUp: gone,
    Delete: gone,
    TimerFired: (state, _message, context) => removeRest(state, context)
  }
})

const describe: Notifications["Queued"]["Describe"] = (state, message, { nowMs }) => {
  const reason = notOwner(state.account, message.caller, true)
  if (reason !== undefined) return deny(reason)
  const view = viewOf(state, message, nowMs)
  return stay().reply<NotificationReply>({ _tag: "Described", view })
}

const gone = (
  { account }: Removed,
  { caller }: Variant<NotificationMessage, "Describe" | "Retry" | "FollowUp" | "Delete">
) => deny(notOwner(account, caller, true) ?? "Gone")

const create = (schedule: Schedule): Notifications["Absent"]["Create"] => (_, message, context) => {
  const { about, account, document, listingKey, requestId, spanId, to, traceId } = message
  if (to.length === 0) return deny("Invalid", "a notification has at least one recipient")
  if (to.length > recipientsMax) {
    return deny("Invalid", `a notification has at most ${recipientsMax} recipients`)
  }
  if (fragmentOf(document) === undefined) {
    return deny("Invalid", "the document is not a notification")
  }
  const { head, nowMs } = context
  // 0.5 is the middle of the jitter: the first attempt is due exactly as the schedule says.
  const nextAtMs = nowMs + (waitMs(schedule, 0, 0.5) ?? 0)
  const state: Queued = {
    _tag: "Queued",
    account,
    requestId,
    createdAtMs: nowMs,
    listingKey,
    ...aboutAt(about, 0),
    traceId,
    ...spanId === undefined ? {} : { spanId },
    recipients: to.map((uri) => ({ to: uri, status: "waiting", attempts: 0, tries: 0, nextAtMs })),
    version: 1,
    ...to.length > recipientsInlineMax ? { listed: to.length, items: [] } : {},
    cleaned: head + 1,
    chars: document.length,
    running: []
  }
  return proceed(state, { _tag: "Many", changed: [...to.keys()], document }, context).reply(
    created(state, false)
  )
}

const openingTag = "<notification>"

const closingTag = "</notification>"

/** The document of a fragment. */
export const documentOf = (fragment: string): string => `${openingTag}${fragment}${closingTag}`

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

const withoutLocation = (recipient: RecipientState): RecipientState => {
  const { delivered: _, location: __, tried: ___, ...shown } = recipient
  return shown
}

/**
 * The recipients as the sender sees them. After a follow-up a location would show whether a reader
 * of the mailbox had removed what it replaces.
 */
const shownRecipients = (
  recipients: ReadonlyArray<RecipientState>,
  isFollowed: boolean
): ReadonlyArray<RecipientState> => isFollowed ? recipients.map(withoutLocation) : recipients

const viewOf = (
  state: Queued,
  { attempts, from = 0, max = describedRecipientsMax }: Variant<NotificationMessage, "Describe">,
  nowMs: number
): NotificationView => {
  const { account, createdAtMs, followUps, recipients, version } = state
  const about = aboutIn(state)
  const shown = recipients.slice(from, from + Math.min(max, describedRecipientsMax))
  const held = heldOf(state, shown, nowMs)
  return {
    account,
    createdAtMs,
    status: statusOf(recipients),
    recipients: shownRecipients(shown, followUps !== undefined),
    count: recipients.length,
    version,
    ...about === undefined ? {} : { about },
    ...held === undefined ? {} : { held },
    ...followUps === undefined ? {} : { followUps },
    ...attempts === true ? { attemptItems: attemptItems(state) } : {}
  }
}

/** Whether a request is among these, for as long as its key stands for it. */
const isKnownRetry = ({ retries = [] }: Queued, id: string | undefined, nowMs: number): boolean =>
  retries.some(({ atMs, requestId }) => requestId === id && nowMs < atMs + idempotencyRetentionMs)

const retry: Notifications["Queued"]["Retry"] = (state, message, context) => {
  const { caller, requestId, to } = message
  const reason = notOwner(state.account, caller, true)
  if (reason !== undefined) return deny(reason)
  const { nowMs } = context
  if (isKnownRetry(state, requestId, nowMs)) return stay().reply(retried(0, true))
  const named = to === undefined ? message.recipients : recipientsAt(state, to)
  // Not each notification of a span went there.
  if (to !== undefined && named?.length === 0) return stay().reply(retried(0, false))
  const start = named === undefined ? undefined : startReplay(state, named, nowMs)
  if (start !== undefined && start._tag !== "Begins") return replayRefused(start)
  const recipients = afterRetry(state, named, nowMs)
  const changed = [...recipients.keys()].filter((at) => recipients[at] !== state.recipients[at])
  if (changed.length === 0) return stay().reply(retried(0, false))
  // After that time the same key stands for a new request.
  const retries = (state.retries ?? []).filter(({ atMs }) => nowMs < atMs + idempotencyRetentionMs)
  const next: Queued = {
    ...reopened(state),
    recipients,
    version: state.version + 1,
    ...requestId === undefined
      ? {}
      : { retries: [...retries, { requestId, atMs: nowMs }].slice(-keyedRetriesMax) },
    ...start === undefined ? {} : { replaysMs: start.replaysMs },
    running: runningBeside(state, undefined, nowMs)
  }
  return hintWaiting(proceed(next, { _tag: "Many", changed }, context), next)
    .reply(retried(changed.length, false))
}

const retried = (recipients: number, isRepeated: boolean): NotificationReply => ({
  _tag: "Retried",
  recipients,
  isRepeated
})

const replayRefused = (
  refused: Exclude<ReplayStart, { readonly _tag: "Begins" }>
): Decision<never, NotificationReply> =>
  refused._tag === "TooMany"
    ? stay().reply({ _tag: "TooManyReplays", untilMs: refused.untilMs })
    : deny(refused.reason, refused.detail)

/** What fails again is reported again; a report that waits is not lost. */
const reopened = (state: Queued): Queued => {
  const { endedAtMs: _, failureReport, ...open } = state
  return { ...open, ...failureReport?.description === undefined ? {} : { failureReport } }
}

/** Whether one of these follow-ups is of this request; after its retention a key is free. */
const isRepeatedIn = (
  followUps: ReadonlyArray<SenderFollowUp>,
  id: string,
  nowMs: number
): boolean =>
  followUps.some(({ atMs, requestId }) => requestId === id && nowMs < atMs + idempotencyRetentionMs)

const followUp =
  (retentionMs: number): Notifications["Queued"]["FollowUp"] =>
  (state, { about, caller, document, requestId }, context) => {
    const isWithdrawal = document === undefined
    // Nobody sends in the name of another account, not even an admin.
    const reason = notOwner(state.account, caller, isWithdrawal)
    if (reason !== undefined) return deny(reason)
    const { followUps = [] } = state
    const { head, nowMs } = context
    if (isRepeatedIn(followUps, requestId, nowMs)) {
      return stay().reply<NotificationReply>({ _tag: "FollowedUp", isRepeated: true })
    }
    if (isWithdrawn(state)) return deny("Ended", "the notification was withdrawn before")
    if (followUps.length >= followUpsMax && !isWithdrawal) {
      const bound = `a notification is replaced ${followUpsMax} times at most: send a new one`
      return deny("Full", bound)
    }
    const text = document ?? documentOf(withdrawalFragment(nowMs))
    if (fragmentOf(text) === undefined) return deny("Invalid", "the document is not a notification")
    const kind = isWithdrawal ? "withdrawal" : "replacement"
    const running = runningBeside(state, undefined, nowMs)
    const busy = new Set(running.map(({ recipient }) => recipient))
    const edition = editionOf(state)
    const next: Queued = {
      ...reopened(state),
      ...isWithdrawal ? {} : aboutAt(about, edition + 1),
      recipients: state.recipients.map((one, at) =>
        afterFollowUp(one, { edition, isRunning: busy.has(at), isWithdrawal, nowMs })
      ),
      version: state.version + 1,
      chars: text.length,
      followUps: [...followUps, { kind, requestId, atMs: nowMs, item: head + 1 }],
      running
    }
    return storeFollowUp(state, next, text, retentionMs, context)
      .perform<NotificationAction>({ _tag: "MarkRevised", edition: edition + 1 })
      .reply<NotificationReply>({ _tag: "FollowedUp", isRepeated: false })
  }

/** Whether the listing may show `sent` of a notification that is tried again. */
const mayHintSent = ({ followUps, replaysMs }: Queued): boolean =>
  followUps !== undefined || replaysMs !== undefined

const hintWaiting = (
  decision: NotificationDecision,
  { listingKey }: Queued
): NotificationDecision =>
  decision.perform<NotificationAction>({ _tag: "UpdateListing", listingKey, status: "waiting" })

/** Stores the state after a follow-up with its document, and begins the attempts that are due. */
const storeFollowUp = (
  before: Queued,
  next: Queued,
  document: string,
  retentionMs: number,
  context: DecisionContext
): NotificationDecision => {
  const changed = [...next.recipients.keys()].filter((at) =>
    next.recipients[at] !== before.recipients[at]
  )
  if (next.recipients.every(hasEnded)) return end(next, changed, retentionMs, context, document)
  return hintWaiting(proceed(next, { _tag: "Many", changed, document }, context), next)
}

const attempted =
  (schedule: Schedule, retentionMs: number): Notifications["Queued"]["Attempted"] =>
  (state, message, context) => {
    const { attempt, edition = 0, recipient: at } = message
    const { nowMs } = context
    const before = state.recipients[at]
    // The message is late or repeated.
    if (before === undefined || !isNext(before, attempt)) return stay()
    const deferred = deferredInMemory(state, message, nowMs)
    if (deferred !== undefined) return proceed(deferred, { _tag: "Nothing" }, context)
    const result = afterAttempt(schedule, before, message, nowMs)
    const isEarlier = edition < editionOf(state)
    const after = isEarlier ? afterEarlier(result, edition, nowMs) : result
    const isReported = after.status === "failed" && message.mayReport === true &&
      mayReport(state, context)
    const kept = keptAttempt(state, message, after, context)
    const next: Queued = {
      ...state,
      recipients: state.recipients.with(at, after),
      version: state.version + 1,
      running: runningBeside(state, at, nowMs),
      ...isReported ? { failureReport: reportOf(state, after, nowMs) } : {},
      ...kept === undefined ? {} : { attemptLog: kept.attemptLog }
    }
    const isLast = hasEnded(after) && next.recipients.every(hasEnded)
    const change = { attempt: kept?.item, isReported, isLast }
    const decision = withResult(next, at, change, retentionMs, context)
    const { dropped = [] } = kept ?? {}
    return dropped.length === 0 ? decision : decision.removeItems(...dropped.map(([n]) => n))
  }

/** Stores the result of the attempt at a recipient. */
const withResult = (
  next: Queued,
  at: number,
  { attempt, isLast, isReported }: {
    /** The log item of the attempt, if it is kept. */
    readonly attempt: string | undefined
    readonly isReported: boolean
    /** All recipients have ended. */
    readonly isLast: boolean
  },
  retentionMs: number,
  context: DecisionContext
): NotificationDecision => {
  if (isLast) return end(next, [at], retentionMs, context, attempt)
  // The record has the report.
  const change: NotificationChange = isReported
    ? { _tag: "Many", changed: [at], attempt }
    : { _tag: "Result", at, attempt }
  return proceed(next, change, context)
}

/** An attempt was not made, and its recipients wait for the end of a pause. */
const attemptHeld: Notifications["Queued"]["AttemptHeld"] = (
  state,
  { attempt, origin, recipient: at },
  context
) => {
  const { nowMs } = context
  const before = state.recipients[at]
  // The message is late or repeated.
  if (before === undefined || !isNext(before, attempt)) return stay()
  const running = runningBeside(state, at, nowMs)
  const change = afterHeld(state, { mayRepeat: mayRepeatAt(state, at), origin, running }, nowMs)
  const { holds, isNew, isSettled, isShown } = change
  if (!isNew && !isSettled) {
    return proceed({ ...state, running }, { _tag: "Nothing" }, context)
  }
  const version = isShown ? state.version + 1 : state.version
  const decision = proceed(
    { ...state, holds, running, version },
    { _tag: "Many", changed: [] },
    context
  )
  return isNew
    ? decision.perform<NotificationAction>({
      _tag: "ConfirmHold",
      account: state.account,
      to: before.to,
      origin
    })
    : decision
}

/** A pause has ended. What another one still holds back asks again. */
const release: Notifications["Queued"]["Release"] = (state, _message, context) => {
  if (!mayRelease(state)) return stay().reply(done)
  const running = runningBeside(state, undefined, context.nowMs)
  const next: Queued = { ...withoutHolds(state), running, version: state.version + 1 }
  return proceed(next, { _tag: "Many", changed: [] }, context).reply(done)
}

/** Whether the next failure is reported: the first one, once every node knows reports. */
const mayReport = ({ failureReport }: Queued, { format }: DecisionContext): boolean =>
  format >= failureReportsFormat && failureReport === undefined

/** One for each notification, whatever its recipients: its page shows them all. */
const reportOf = (
  state: Queued,
  { problem = "the attempts have ended", to }: RecipientState,
  nowMs: number
): FailureReport => {
  const { recipients } = state
  const about = aboutIn(state)
  const failed = 1 + recipients.filter(({ status }) => status === "failed").length
  const counts = { failed, count: recipients.length }
  const failure = { about, isWithdrawal: isWithdrawn(state), to, problem, ...counts }
  return { atMs: nowMs, description: undeliveredText(failure) }
}

/** A step of the report has ended. What remains of a settled one prevents another report. */
const reportStepEnded = (retentionMs: number) =>
(
  state: Queued,
  message: Variant<NotificationMessage, "FailureReportAddressed" | "FailureReportSettled">,
  context: DecisionContext
): Decision<never> | NotificationDecision => {
  const next = afterReportStep(state, message)
  if (next === undefined) return stay()
  if (next.endedAtMs !== undefined) return rest(next, [], next.endedAtMs + retentionMs, context)
  const running = runningBeside(next, undefined, context.nowMs)
  return proceed({ ...next, running }, { _tag: "Many", changed: [] }, context)
}

/**
 * The state in which an attempt is deferred for a short time, which is not stored. Undefined if the
 * attempt has another outcome, or if its deferral is so long that it is stored.
 */
const deferredInMemory = (
  state: Queued,
  { outcome, recipient }: Attempted,
  nowMs: number
): Queued | undefined => {
  if (outcome._tag !== "Deferred" || outcome.untilMs > nowMs + deferredInMemoryMs) return undefined
  const untilMs = Math.max(outcome.untilMs, nowMs + deferredMinMs)
  const deferred: RunningAttempt = {
    recipient,
    untilMs,
    deferred: true,
    ...mayRepeatAt(state, recipient) ? { mayRepeat: true } : {}
  }
  return { ...state, running: [...runningBeside(state, recipient, nowMs), deferred] }
}

/** Whether the attempt at a recipient may have been made before, with an unknown result. */
const mayRepeatAt = ({ running }: Queued, at: number): boolean => {
  const own = running?.find(({ recipient }) => recipient === at)
  return own === undefined || own.mayRepeat === true
}

/**
 * The running attempts without the one at `recipient`. After a reload the actor does not know
 * them. It then assumes that an attempt at each due recipient runs: a running one may have begun
 * before the reload, and the next timer repeats the others.
 */
const runningBeside = (
  state: Queued,
  recipient: number | undefined,
  nowMs: number
): ReadonlyArray<RunningAttempt> => {
  const { running } = state
  if (running !== undefined) return running.filter((one) => one.recipient !== recipient)
  const busy = new Set(recipient === undefined ? [] : [recipient])
  const holdOf = quietHolds(state, nowMs)
  const due = firstDue(state, busy, attemptsAtOnceMax - busy.size, nowMs, holdOf)
  return leased(due, nowMs, () => true)
}

/** Which part of the state has changed, so that it must be stored. */
type NotificationChange =
  | { readonly _tag: "Nothing" }
  /** The recipient at this index has changed by this attempt; it has a log item if it is kept. */
  | { readonly _tag: "Result"; readonly at: number; readonly attempt: string | undefined }
  /**
   * These recipients and the record have changed; a new notification, or a follow-up, has its
   * document too.
   */
  | {
    readonly _tag: "Many"
    readonly changed: ReadonlyArray<number>
    readonly attempt?: string | undefined
    readonly document?: string
  }

/**
 * Stores the change, begins the attempts that are due, and sets the timer for the others. At least
 * one recipient has not ended.
 */
const proceed = (
  current: Queued,
  change: NotificationChange,
  context: DecisionContext
): NotificationDecision => {
  const { nowMs } = context
  const { nextTimerMs, running, started } = selectDue(current, nowMs)
  const actions: Array<NotificationAction> = []
  const state = beginReport({ ...current, running }, nowMs, actions)
  const decision = write(state, change, context)
  const document = change._tag === "Many" ? change.document : undefined
  const isSmall = current.chars <= cachedDocumentCharsMax
  for (const at of started) {
    actions.push(attemptAt(state, at, isSmall ? document : undefined, context))
  }
  for (const action of actions) decision.perform<NotificationAction>(action)
  const { failureReportUntilMs } = state
  if (running.length === 0 && failureReportUntilMs === undefined) {
    return decision.setTimer(nextTimerMs)
  }
  // A stored timer that has fired is in the past already. After a request there may be none.
  return (change._tag === "Many" ? decision.setTimer(nowMs) : decision)
    .deferTimer(Math.min(nextTimerMs, failureReportUntilMs ?? nextTimerMs))
}

/** Begins the next step of a report that waits, unless one is under way. */
const beginReport = (state: Queued, nowMs: number, actions: Array<NotificationAction>): Queued =>
  beginReportStep(state, nowMs, {
    push: (action) => actions.push({ ...action, account: state.account })
  })

/**
 * Waits for its report, and then until the notification is removed at `untilMs`. `changed`: the
 * recipients to store with the record, and `first` the item before them; undefined if nothing has
 * changed.
 */
const rest = (
  current: Queued,
  changed: ReadonlyArray<number> | undefined,
  untilMs: number,
  context: DecisionContext,
  first?: string
): NotificationDecision => {
  const { nowMs } = context
  const actions: Array<NotificationAction> = []
  // Before the write, which adds to the state what it has appended and removed.
  const state = beginReport(current, nowMs, actions)
  const decision = changed === undefined
    ? stay<NotificationState>()
    : writeRecipients(state, changed, context, true, first)
  if (changed === undefined && actions.length > 0) decision.becomeInMemory(state)
  for (const action of actions) decision.perform<NotificationAction>(action)
  const { failureReportUntilMs } = state
  if (failureReportUntilMs === undefined) return decision.setTimer(untilMs)
  return (changed === undefined ? decision : decision.setTimer(nowMs))
    .deferTimer(failureReportUntilMs)
}

/** The attempts that a decision begins, and those that run after it. */
interface Begun {
  readonly started: ReadonlyArray<number>
  readonly running: ReadonlyArray<RunningAttempt>
  /** When the timer fires, if no message comes before. */
  readonly nextTimerMs: number
}

/** Selects the due attempts to begin, within the limit of attempts at once. */
const selectDue = (state: Queued, nowMs: number): Begun => {
  const current = state.running?.filter(({ untilMs }) => untilMs > nowMs) ?? []
  const busy = new Set<number>()
  let attempts = 0
  let nextTimerMs = holdsEndMs(state, nowMs)
  for (const { deferred, recipient, untilMs } of current) {
    busy.add(recipient)
    if (deferred !== true) attempts += 1
    if (untilMs < nextTimerMs) nextTimerMs = untilMs
  }
  const room = Math.max(0, attemptsAtOnceMax - attempts)
  const started = firstDue(state, busy, room, nowMs, activeHolds(state, nowMs))
  const running = started.length === 0
    ? current
    : [...current, ...leased(started, nowMs, repeatedIn(state))]
  if (started.length > 0) nextTimerMs = Math.min(nextTimerMs, nowMs + attemptLeaseMs)
  for (const recipient of state.recipients) {
    // A recipient that is due but does not fit the limit waits for the end of another attempt.
    const { nextAtMs: atMs = 0 } = recipient
    if (atMs > nowMs && atMs < nextTimerMs && !hasEnded(recipient)) nextTimerMs = atMs
  }
  return { started, running, nextTimerMs }
}

/**
 * Whether the next attempt at a recipient may repeat one. A reload does not know; otherwise one was
 * lost with its lease, or was deferred when it may have repeated one.
 */
const repeatedIn = ({ running }: Queued): (recipient: number) => boolean => {
  if (running === undefined) return () => true
  const repeated = new Set(
    running.filter(({ deferred, mayRepeat }) => deferred !== true || mayRepeat === true)
      .map(({ recipient }) => recipient)
  )
  return (recipient) => repeated.has(recipient)
}

/** The recipients that are due, not held and not busy, the longest due first; `max` at most. */
const firstDue = (
  { recipients }: Queued,
  busy: ReadonlySet<number>,
  max: number,
  nowMs: number,
  holdOf: ReturnType<typeof activeHolds>
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
  const free: Array<number> = []
  for (const at of due) {
    if (free.length === max) break
    if (holdOf(recipients[at]?.to ?? "") === undefined) free.push(at)
  }
  return free
}

/** Running attempts that begin now and count as lost after their lease. */
const leased = (
  recipients: ReadonlyArray<number>,
  nowMs: number,
  mayRepeat: (recipient: number) => boolean
): ReadonlyArray<RunningAttempt> =>
  recipients.map((recipient) => ({
    recipient,
    untilMs: nowMs + attemptLeaseMs,
    ...mayRepeat(recipient) ? { mayRepeat: true } : {}
  }))

/** The action of the next attempt at the recipient with this index. */
const attemptAt = (
  state: Queued,
  at: number,
  document: string | undefined,
  context: DecisionContext
): NotificationAction => {
  const recipient = state.recipients[at]
  if (recipient === undefined) throw new RangeError(`there is no recipient ${at}`)
  const { account, chars, spanId, traceId } = state
  return {
    _tag: "Attempt",
    recipient: at,
    attempt: recipient.attempts + 1,
    to: recipient.to,
    traceId,
    spanId,
    account,
    document,
    followUp: relayFollowUpOf(state, recipient),
    chars,
    ...context.format >= failureReportsFormat ? { mayReport: true } : {},
    ...context.format >= pausesFormat ? { mayBePaused: true } : {}
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
      return writeRecipients(state, [change.at], context, false, change.attempt)
    case "Many":
      return writeRecipients(
        state,
        change.changed,
        context,
        true,
        change.document ?? change.attempt
      )
  }
}

/**
 * Stores the first item, which is a document or an attempt, and the recipients that have changed.
 * The record has the recipients if they are few; otherwise each is a log item, and the record is
 * written only if `storesRecord`. When most items are outdated, the oldest items are removed,
 * except documents and attempts, and those that still count are appended again.
 */
const writeRecipients = (
  state: Queued,
  changed: ReadonlyArray<number>,
  { head }: DecisionContext,
  storesRecord: boolean,
  first?: string
): NotificationDecision => {
  const decision = first === undefined
    ? stay<NotificationState>()
    : append<NotificationState>(first)
  const { cleaned, listed } = state
  if (listed === undefined) return decision.become(state)
  const items = [...state.items ?? []]
  let last = first === undefined ? head : head + 1
  const appendItem = (at: number): void => {
    decision.append(encodeRecipient(at, state))
    items[at] = ++last
  }
  for (const at of changed) appendItem(at)
  if (last - cleaned <= 2 * listed + outdatedItemsMin) {
    const next = { ...state, items }
    return storesRecord ? decision.become(next) : decision.becomeInMemory(next)
  }
  const upTo = Math.min(cleaned + cleanedItemsMax, head)
  for (const [at, n] of items.entries()) if (n <= upTo) appendItem(at)
  const staying = new Set([...documentItems(state), ...attemptItems(state)])
  return decision.become({ ...state, items, cleaned: upTo })
    .removeItems(...numbers(cleaned + 1, upTo).filter((n) => !staying.has(n)))
}

/** The log items that are documents of follow-ups. They stay until the notification ends. */
const documentItems = ({ followUps = [] }: Queued): ReadonlyArray<number> =>
  followUps.map(({ item }) => item)

/** The log numbers from `first` to `last`. */
const numbers = (first: number, last: number): ReadonlyArray<number> =>
  Array.from({ length: Math.max(0, last - first + 1) }, (_, at) => first + at)

/**
 * Stores that all recipients have ended: `changed` are the indices of the last ones, and `first` is
 * the item before them.
 */
const end = (
  current: Queued,
  changed: ReadonlyArray<number>,
  retentionMs: number,
  context: DecisionContext,
  first?: string
): NotificationDecision => {
  const { nowMs } = context
  const state: Queued = { ...withoutHolds(current), endedAtMs: nowMs, running: [] }
  const { listingKey, recipients } = state
  const status = statusOf(recipients)
  return rest(state, changed, nowMs + retentionMs, context, first)
    .perform<NotificationAction>({ _tag: "UpdateListing", listingKey, status })
}

const remove = (state: Queued, context: DecisionContext): NotificationDecision => {
  const { account, cleaned, listingKey } = state
  const removed: Removed = { _tag: "Removed", account, removedAtMs: context.nowMs, cleaned }
  const stayed = [...documentItems(state), ...attemptItems(state)]
  return removeRest(removed, context, [1, ...stayed.filter((n) => n <= cleaned)])
    .perform<NotificationAction>({ _tag: "UpdateListing", listingKey, status: null })
}

/** Removes these log items and the next ones. The timer fires again for the others. */
const removeRest = (
  state: Removed,
  { head, nowMs }: DecisionContext,
  first: ReadonlyArray<number> = []
): NotificationDecision => {
  const { cleaned, ...kept } = state
  if (cleaned === undefined) return stay<NotificationState>().setTimer(null)
  const upTo = Math.min(cleaned + removalsMax - first.length, head)
  const next = upTo < head ? { ...kept, cleaned: upTo } : kept
  return become<NotificationState>(next)
    .removeItems(...first, ...numbers(cleaned + 1, upTo))
    .setTimer(upTo < head ? nowMs : null)
}
