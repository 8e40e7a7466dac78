/**
 * What an errand decides. The mailbox's commit has set the timer that begins it, so that none is
 * forgotten; a timer stays stored, and is held here, until what it began has ended.
 */
import { become, type BehaviorTable, type Decision, stay,
  type Variant } from "../../runtime/index.ts"
import { errandLeaseMs } from "../limits.ts"
import { dueAtMs, type Schedule } from "../outbound/index.ts"
import type { BackgroundTaskAction, BackgroundTaskMessage, BackgroundTaskState,
  ContentCopy } from "./protocol.ts"

type Errands = BehaviorTable<
  BackgroundTaskState,
  BackgroundTaskMessage,
  never,
  BackgroundTaskAction
>

type Attempted = Variant<BackgroundTaskMessage, "Attempted">

type Decided = Decision<BackgroundTaskState, never, BackgroundTaskAction>

/** Whether this errand is a fetch; a receipt that fails for good is given up. */
export type IsFetch = (id: string) => boolean

const attempt = (nowMs: number, problem: string | undefined): Decided =>
  stay<BackgroundTaskState>().perform<BackgroundTaskAction>({ _tag: "Attempt", problem })
    .deferTimer(
      nowMs + errandLeaseMs
    )

/** It is over, and leaves nothing. */
const over = (): Decided => stay<BackgroundTaskState>().removeActor()

/** Goes on in `state` at its due time; the timer is stored with it. */
const later = (state: Variant<BackgroundTaskState, "Retrying" | "Reporting">): Decided =>
  become<BackgroundTaskState>(state).setTimer(state.nextAtMs)

const begin = (state: Variant<BackgroundTaskState, "Reporting">, nowMs: number): Decided =>
  become<BackgroundTaskState>(state)
    .setTimer(state.nextAtMs)
    .deferTimer(nowMs + errandLeaseMs)
    .perform<BackgroundTaskAction>({ _tag: "Attempt", problem: state.problem })

const show = (copy: ContentCopy, nowMs: number): Decided =>
  become<BackgroundTaskState>({ _tag: "Kept", copy, shown: false })
    .setTimer(nowMs)
    .deferTimer(nowMs + errandLeaseMs)
    .perform<BackgroundTaskAction>({ _tag: "Show", copy })

/** What follows on an attempt, the `tries` before it counted. */
const onAttempt = (
  schedule: Schedule,
  isFetch: boolean,
  tries: number,
  { copy, outcome, random }: Attempted,
  nowMs: number
): Decided => {
  const failed = (problem: string): Decided =>
    isFetch ? begin({ _tag: "Reporting", problem, tries: 0, nextAtMs: nowMs }, nowMs) : over()
  switch (outcome._tag) {
    case "Delivered":
      return copy === undefined ? over() : show(copy, nowMs)
    case "PermanentFailure":
      return failed(outcome.problem)
    case "Deferred":
      return later({ _tag: "Retrying", tries, nextAtMs: outcome.untilMs })
    case "RetryableFailure": {
      const nextAtMs = dueAtMs(schedule, tries + 1, outcome, nowMs, random)
      return nextAtMs === undefined
        ? failed(outcome.problem)
        : later({ _tag: "Retrying", tries: tries + 1, nextAtMs })
    }
  }
}

/** What follows on the report of a problem: it is tried like anything else, then given up. */
const onReport = (
  schedule: Schedule,
  state: Variant<BackgroundTaskState, "Reporting">,
  { outcome, random }: Attempted,
  nowMs: number
): Decided => {
  if (outcome._tag === "Deferred") return later({ ...state, nextAtMs: outcome.untilMs })
  if (outcome._tag !== "RetryableFailure") return over()
  const tries = state.tries + 1
  const nextAtMs = dueAtMs(schedule, tries, outcome, nowMs, random)
  return nextAtMs === undefined ? over() : later({ ...state, tries, nextAtMs })
}

/** The errand's table, under the service's schedule. */
export const backgroundTaskTable = (schedule: Schedule, isFetch: IsFetch): Errands => ({
  Absent: {
    TimerFired: (_state, _message, { nowMs }) => attempt(nowMs, undefined),
    Attempted: (_state, message, { nowMs, self }) =>
      onAttempt(schedule, isFetch(self.id), 0, message, nowMs),
    Moot: over,
    Shown: () => stay(),
    Looked: () => stay()
  },
  Retrying: {
    TimerFired: ({ nextAtMs }, _message, { nowMs }) =>
      nowMs < nextAtMs ? stay<BackgroundTaskState>().setTimer(nextAtMs) : attempt(nowMs, undefined),
    Attempted: ({ tries }, message, { nowMs, self }) =>
      onAttempt(schedule, isFetch(self.id), tries, message, nowMs),
    Moot: over,
    Shown: () => stay(),
    Looked: () => stay()
  },
  Reporting: {
    TimerFired: ({ nextAtMs, problem }, _message, { nowMs }) =>
      nowMs < nextAtMs ? stay<BackgroundTaskState>().setTimer(nextAtMs) : attempt(nowMs, problem),
    Attempted: (state, message, { nowMs }) => onReport(schedule, state, message, nowMs),
    Moot: over,
    Shown: () => stay(),
    Looked: () => stay()
  },
  Kept: {
    TimerFired: ({ copy, shown }, _message, { nowMs }) =>
      stay<BackgroundTaskState>()
        .perform<BackgroundTaskAction>({ _tag: shown ? "Look" : "Show", copy })
        .deferTimer(nowMs + errandLeaseMs),
    Attempted: () => stay(),
    // Its removal may have come between: it is looked at once more, the mailbox knowing of it.
    Shown: (state, _message, { nowMs }) =>
      become<BackgroundTaskState>({ ...state, shown: true })
        .setTimer(nowMs)
        .deferTimer(nowMs + errandLeaseMs)
        .perform<BackgroundTaskAction>({ _tag: "Look", copy: state.copy }),
    Looked: ({ copy }, { there }, { nowMs }) =>
      there
        ? stay<BackgroundTaskState>().setTimer(null)
        : stay<BackgroundTaskState>().perform<BackgroundTaskAction>({ _tag: "Clear", copy })
          .deferTimer(
            nowMs + errandLeaseMs
          ),
    // The copy is cleared away.
    Moot: over
  }
})
