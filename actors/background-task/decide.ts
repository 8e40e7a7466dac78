/**
 * The decisions of a background task. The mailbox's commit has set the timer that begins it, so
 * none is lost. The timer stays stored while an attempt runs, and is deferred in memory: after a
 * crash it fires at once, and the attempt is repeated.
 */
import { become, type BehaviorTable, type Decision, type DecisionContext, stay,
  type Variant } from "../../runtime/index.ts"
import { backgroundTaskLeaseMs } from "../limits.ts"
import { dueAtMs, type Schedule } from "../outbound/index.ts"
import { deny } from "../refusals.ts"
import { type BackgroundTaskAction, type BackgroundTaskMessage, type BackgroundTaskReply,
  type BackgroundTaskState, type ContentCopy, targetOf } from "./protocol.ts"

type BackgroundTasks = BehaviorTable<
  BackgroundTaskState,
  BackgroundTaskMessage,
  BackgroundTaskReply,
  BackgroundTaskAction
>

type BackgroundTaskDecision = Decision<
  BackgroundTaskState,
  BackgroundTaskReply,
  BackgroundTaskAction
>

type Attempted = Variant<BackgroundTaskMessage, "Attempted">

type Copied = Variant<BackgroundTaskState, "Copied">

/** The states in which the task is attempted: to fetch, to send its receipt, or to report. */
type Attempting = Variant<BackgroundTaskState, "Absent" | "Retrying" | "Reporting">

/** The table, under the service's schedule. */
export const backgroundTaskTable = (schedule: Schedule): BackgroundTasks => {
  const attempting = {
    TimerFired: (
      state: Attempting,
      _message: BackgroundTaskMessage,
      { nowMs }: DecisionContext
    ): BackgroundTaskDecision =>
      state._tag !== "Absent" && nowMs < state.nextAtMs
        ? stay<BackgroundTaskState>().setTimer(state.nextAtMs)
        : perform({
          _tag: "Attempt",
          problem: state._tag === "Reporting" ? state.problem : undefined
        }, nowMs),
    CopyNamed: nameCopy,
    Attempted: (
      state: Attempting,
      message: Attempted,
      { nowMs, self }: DecisionContext
    ): BackgroundTaskDecision =>
      onAttempt(schedule, targetOf(self).kind === "fetch", state, message, nowMs),
    // The content exists already: only its removal is left to do.
    InlinedFound: (
      _state: Attempting,
      { copy }: Variant<BackgroundTaskMessage, "InlinedFound">,
      { nowMs }: DecisionContext
    ): BackgroundTaskDecision =>
      checkNotification({ _tag: "Copied", copy, isListed: true, checks: 0 }, nowMs),
    Obsolete: (
      state: Attempting,
      _message: BackgroundTaskMessage,
      { nowMs }: DecisionContext
    ): BackgroundTaskDecision => endWithoutCopy(state, nowMs),
    CopyListed: () => stay(),
    NotificationChecked: () => stay(),
    CopyRemoved: () => stay()
  }
  return {
    Absent: attempting,
    Retrying: attempting,
    Reporting: attempting,
    Copied: copied,
    Removing: removing
  }
}

const copied: BackgroundTasks["Copied"] = {
  TimerFired: (state, _message, { nowMs }) =>
    state.isListed
      ? checkNotification(state, nowMs)
      : perform({ _tag: "ListCopy", copy: state.copy }, nowMs),
  CopyNamed: () => deny("Superseded"),
  Attempted: () => stay(),
  // A slow attempt: only a check ends this state.
  InlinedFound: () => stay(),
  Obsolete: () => stay(),
  // The notification may have been removed before the mailbox knew of the copy: check it.
  CopyListed: (state, _message, { nowMs }) =>
    checkNotification({ ...state, isListed: true }, nowMs),
  NotificationChecked: ({ checks, copy }, { check, exists }, { nowMs }) => {
    if (!exists) return beginRemoval(copy, nowMs)
    // The notification may have been removed after an earlier check.
    return check === checks ? stay<BackgroundTaskState>().setTimer(null) : stay()
  },
  CopyRemoved: () => stay()
}

const removing: BackgroundTasks["Removing"] = {
  TimerFired: ({ copy }, _message, { nowMs }) => perform({ _tag: "RemoveCopy", copy }, nowMs),
  CopyNamed: () => deny("Superseded"),
  Attempted: () => stay(),
  InlinedFound: () => stay(),
  Obsolete: () => stay(),
  CopyListed: () => stay(),
  NotificationChecked: () => stay(),
  CopyRemoved: () => end()
}

/** Performs an action; the stored timer is past, and deferred while the action runs. */
const perform = (action: BackgroundTaskAction, nowMs: number): BackgroundTaskDecision =>
  stay<BackgroundTaskState>()
    .perform<BackgroundTaskAction>(action)
    .deferTimer(nowMs + backgroundTaskLeaseMs)

/** A new state, in which an action runs. */
const becomeWithLease = (state: BackgroundTaskState, nowMs: number) =>
  become<BackgroundTaskState>(state)
    .setTimer(nowMs)
    .deferTimer(nowMs + backgroundTaskLeaseMs)

/** Performs an action in a new state. */
const performIn = (
  state: BackgroundTaskState,
  action: BackgroundTaskAction,
  nowMs: number
): BackgroundTaskDecision => becomeWithLease(state, nowMs).perform<BackgroundTaskAction>(action)

/** The task has ended; nothing is left of it. */
const end = (): BackgroundTaskDecision => stay<BackgroundTaskState>().removeActor()

const beginRemoval = (copy: ContentCopy, nowMs: number): BackgroundTaskDecision =>
  performIn({ _tag: "Removing", copy }, { _tag: "RemoveCopy", copy }, nowMs)

const copyOf = (state: Attempting): ContentCopy | undefined =>
  state._tag === "Absent" ? undefined : state.copy

/** Ends the task; first removes a copy that an attempt may have stored. */
const endWithoutCopy = (state: Attempting, nowMs: number): BackgroundTaskDecision => {
  const copy = copyOf(state)
  return copy === undefined ? end() : beginRemoval(copy, nowMs)
}

const checkNotification = (state: Copied, nowMs: number): BackgroundTaskDecision => {
  const check = state.checks + 1
  return performIn({ ...state, checks: check }, { _tag: "CheckNotification", check }, nowMs)
}

/** Records the copy that an attempt stores next, so that the task can remove it in every case. */
const nameCopy = (
  state: Attempting,
  { copy }: Variant<BackgroundTaskMessage, "CopyNamed">,
  { nowMs }: DecisionContext
): BackgroundTaskDecision => {
  if (state._tag === "Reporting") return deny("Superseded")
  const named = copyOf(state)
  if (named !== undefined) return stay<BackgroundTaskState>().reply(namedReply(named))
  const retrying = state._tag === "Absent" ? { _tag: "Retrying" as const, tries: 0 } : state
  return becomeWithLease({ ...retrying, nextAtMs: nowMs, copy }, nowMs).reply(namedReply(copy))
}

const namedReply = (copy: ContentCopy): BackgroundTaskReply => ({ _tag: "Named", copy })

const onAttempt = (
  schedule: Schedule,
  isFetch: boolean,
  state: Attempting,
  { outcome, random }: Attempted,
  nowMs: number
): BackgroundTaskDecision => {
  const isReport = state._tag === "Reporting"
  const copy = copyOf(state)
  const before = state._tag === "Absent" ? 0 : state.tries
  const retry = (tries: number, nextAtMs: number): BackgroundTaskDecision =>
    become<BackgroundTaskState>(
      state._tag === "Absent"
        ? { _tag: "Retrying", tries, nextAtMs }
        : { ...state, tries, nextAtMs }
    ).setTimer(nextAtMs)
  if (outcome._tag === "Deferred") return retry(before, outcome.untilMs)
  if (outcome._tag === "Delivered") {
    if (copy === undefined || isReport) return endWithoutCopy(state, nowMs)
    const next: Copied = { _tag: "Copied", copy, isListed: false, checks: 0 }
    return performIn(next, { _tag: "ListCopy", copy }, nowMs)
  }
  if (outcome._tag === "RetryableFailure") {
    const nextAtMs = dueAtMs(schedule, before + 1, outcome, nowMs, random)
    if (nextAtMs !== undefined) return retry(before + 1, nextAtMs)
  }
  // The sender learns why its content was not fetched; a receipt or report that fails is dropped.
  if (!isFetch || isReport) return endWithoutCopy(state, nowMs)
  const { problem } = outcome
  const reporting = { _tag: "Reporting", problem, tries: 0, nextAtMs: nowMs } as const
  return performIn(
    copy === undefined ? reporting : { ...reporting, copy },
    { _tag: "Attempt", problem },
    nowMs
  )
}
