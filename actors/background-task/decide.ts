/**
 * The decisions of a background task. The mailbox's commit has set the timer that begins it, so
 * none is lost. The timer stays stored while an attempt runs, and is deferred in memory: after a
 * crash it fires at once, and the attempt is repeated.
 */
import { become, type BehaviorTable, type Decision, type DecisionContext, stay,
  type Variant } from "../../runtime/index.ts"
import { backgroundTaskLeaseMs } from "../limits.ts"
import { dueAtMs, type Schedule } from "../outbound/index.ts"
import { type BackgroundTaskAction, type BackgroundTaskMessage, type BackgroundTaskState,
  targetOf } from "./protocol.ts"

type BackgroundTasks = BehaviorTable<
  BackgroundTaskState,
  BackgroundTaskMessage,
  never,
  BackgroundTaskAction
>

type BackgroundTaskDecision = Decision<BackgroundTaskState, never, BackgroundTaskAction>

type Attempted = Variant<BackgroundTaskMessage, "Attempted">

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
    Attempted: (
      state: Attempting,
      message: Attempted,
      { nowMs, self }: DecisionContext
    ): BackgroundTaskDecision =>
      onAttempt(schedule, targetOf(self).kind === "fetch", state, message, nowMs),
    Obsolete: end,
    CopyListed: () => stay(),
    NotificationChecked: () => stay()
  }
  return { Absent: attempting, Retrying: attempting, Reporting: attempting, Copied: copied }
}

const copied: BackgroundTasks["Copied"] = {
  TimerFired: ({ copy, isListed }, _message, { nowMs }) =>
    perform(isListed ? { _tag: "CheckNotification" } : { _tag: "ListCopy", copy }, nowMs),
  Attempted: () => stay(),
  // The notification may have been removed before the mailbox knew of the copy: check it.
  CopyListed: (state, _message, { nowMs }) =>
    performIn({ ...state, isListed: true }, { _tag: "CheckNotification" }, nowMs),
  NotificationChecked: ({ copy }, { exists }, { nowMs }) =>
    exists
      ? stay<BackgroundTaskState>().setTimer(null)
      : perform({ _tag: "RemoveCopy", copy }, nowMs),
  // The copy is removed.
  Obsolete: () => end()
}

/** Performs an action; the stored timer is past, and deferred while the action runs. */
const perform = (action: BackgroundTaskAction, nowMs: number): BackgroundTaskDecision =>
  stay<BackgroundTaskState>()
    .perform<BackgroundTaskAction>(action)
    .deferTimer(nowMs + backgroundTaskLeaseMs)

/** The same in a new state. */
const performIn = (
  state: BackgroundTaskState,
  action: BackgroundTaskAction,
  nowMs: number
): BackgroundTaskDecision =>
  become<BackgroundTaskState>(state)
    .setTimer(nowMs)
    .deferTimer(nowMs + backgroundTaskLeaseMs)
    .perform<BackgroundTaskAction>(action)

/** The task has ended; nothing is left of it. */
const end = (): BackgroundTaskDecision => stay<BackgroundTaskState>().removeActor()

const onAttempt = (
  schedule: Schedule,
  isFetch: boolean,
  state: Attempting,
  { copy, outcome, random }: Attempted,
  nowMs: number
): BackgroundTaskDecision => {
  const isReport = state._tag === "Reporting"
  const before = state._tag === "Absent" ? 0 : state.tries
  const retry = (tries: number, nextAtMs: number): BackgroundTaskDecision =>
    become<BackgroundTaskState>(
      isReport ? { ...state, tries, nextAtMs } : { _tag: "Retrying", tries, nextAtMs }
    ).setTimer(nextAtMs)
  if (outcome._tag === "Deferred") return retry(before, outcome.untilMs)
  if (outcome._tag === "Delivered") {
    return copy === undefined || isReport
      ? end()
      : performIn({ _tag: "Copied", copy, isListed: false }, { _tag: "ListCopy", copy }, nowMs)
  }
  if (outcome._tag === "RetryableFailure") {
    const nextAtMs = dueAtMs(schedule, before + 1, outcome, nowMs, random)
    if (nextAtMs !== undefined) return retry(before + 1, nextAtMs)
  }
  // The sender learns why its content was not fetched; a receipt or report that fails is dropped.
  if (!isFetch || isReport) return end()
  const { problem } = outcome
  return performIn(
    { _tag: "Reporting", problem, tries: 0, nextAtMs: nowMs },
    { _tag: "Attempt", problem },
    nowMs
  )
}
