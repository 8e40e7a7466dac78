/**
 * What a background task decides. The mailbox's commit has set the timer that begins it, so none
 * is lost. The timer stays stored while an attempt runs, and is deferred in memory: after a crash
 * it fires at once, and the attempt is repeated.
 */
import { become, type BehaviorTable, type Decision, stay,
  type Variant } from "../../runtime/index.ts"
import { backgroundTaskLeaseMs } from "../limits.ts"
import { dueAtMs, type Schedule } from "../outbound/index.ts"
import type { BackgroundTaskAction, BackgroundTaskMessage, BackgroundTaskState,
  ContentCopy } from "./protocol.ts"

type BackgroundTasks = BehaviorTable<
  BackgroundTaskState,
  BackgroundTaskMessage,
  never,
  BackgroundTaskAction
>

type BackgroundTaskDecision = Decision<BackgroundTaskState, never, BackgroundTaskAction>

type Attempted = Variant<BackgroundTaskMessage, "Attempted">

type Retrying = Variant<BackgroundTaskState, "Retrying">

type Reporting = Variant<BackgroundTaskState, "Reporting">

/** The table, under the service's schedule. `isFetch` distinguishes fetches from receipts by id. */
export const backgroundTaskTable = (
  schedule: Schedule,
  isFetch: (id: string) => boolean
): BackgroundTasks => ({
  Absent: {
    TimerFired: (_state, _message, { nowMs }) => attempt(nowMs, undefined),
    Attempted: (_state, message, { nowMs, self }) =>
      onAttempt(schedule, isFetch(self.id), 0, message, nowMs),
    Obsolete: end,
    CopyListed: () => stay(),
    NotificationChecked: () => stay()
  },
  Retrying: {
    TimerFired: ({ nextAtMs }, _message, { nowMs }) =>
      nowMs < nextAtMs ? stay<BackgroundTaskState>().setTimer(nextAtMs) : attempt(nowMs, undefined),
    Attempted: ({ tries }, message, { nowMs, self }) =>
      onAttempt(schedule, isFetch(self.id), tries, message, nowMs),
    Obsolete: end,
    CopyListed: () => stay(),
    NotificationChecked: () => stay()
  },
  Reporting: {
    TimerFired: ({ nextAtMs, problem }, _message, { nowMs }) =>
      nowMs < nextAtMs ? stay<BackgroundTaskState>().setTimer(nextAtMs) : attempt(nowMs, problem),
    Attempted: (state, message, { nowMs }) => onReport(schedule, state, message, nowMs),
    Obsolete: end,
    CopyListed: () => stay(),
    NotificationChecked: () => stay()
  },
  Copied: {
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
    Obsolete: end
  }
})

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

const attempt = (nowMs: number, problem: string | undefined): BackgroundTaskDecision =>
  perform({ _tag: "Attempt", problem }, nowMs)

/** The task has ended; nothing is left of it. */
const end = (): BackgroundTaskDecision => stay<BackgroundTaskState>().removeActor()

const retryLater = (state: Retrying | Reporting): BackgroundTaskDecision =>
  become<BackgroundTaskState>(state).setTimer(state.nextAtMs)

/** After an attempt, with `tries` before it. */
const onAttempt = (
  schedule: Schedule,
  isFetch: boolean,
  tries: number,
  { copy, outcome, random }: Attempted,
  nowMs: number
): BackgroundTaskDecision => {
  switch (outcome._tag) {
    case "Delivered":
      return copy === undefined ? end() : list(copy, nowMs)
    case "PermanentFailure":
      return isFetch ? report(outcome.problem, nowMs) : end()
    case "Deferred":
      return retryLater({ _tag: "Retrying", tries, nextAtMs: outcome.untilMs })
    case "RetryableFailure": {
      const nextAtMs = dueAtMs(schedule, tries + 1, outcome, nowMs, random)
      if (nextAtMs !== undefined) {
        return retryLater({ _tag: "Retrying", tries: tries + 1, nextAtMs })
      }
      return isFetch ? report(outcome.problem, nowMs) : end()
    }
  }
}

const list = (copy: ContentCopy, nowMs: number): BackgroundTaskDecision =>
  performIn({ _tag: "Copied", copy, isListed: false }, { _tag: "ListCopy", copy }, nowMs)

const report = (problem: string, nowMs: number): BackgroundTaskDecision =>
  performIn(
    { _tag: "Reporting", problem, tries: 0, nextAtMs: nowMs },
    { _tag: "Attempt", problem },
    nowMs
  )

/** After the report of a problem: it is retried by the schedule, then dropped. */
const onReport = (
  schedule: Schedule,
  state: Reporting,
  { outcome, random }: Attempted,
  nowMs: number
): BackgroundTaskDecision => {
  if (outcome._tag === "Deferred") return retryLater({ ...state, nextAtMs: outcome.untilMs })
  if (outcome._tag !== "RetryableFailure") return end()
  const tries = state.tries + 1
  const nextAtMs = dueAtMs(schedule, tries, outcome, nowMs, random)
  return nextAtMs === undefined ? end() : retryLater({ ...state, tries, nextAtMs })
}
