/** The decisions of a counter of wrong attempts. The count is in memory only. */
import { type BehaviorTable, type Decision, stay } from "../../runtime/index.ts"
import { passwordCheckMs, wrongAccountTokensMax, wrongAttemptsWindowMs, wrongPasswordsMax,
  wrongTokensMax } from "../limits.ts"
import type { Counted, ThrottleMessage, ThrottleReply, ThrottleState } from "./protocol.ts"

const wait = (waitMs: number): ThrottleReply => ({ _tag: "Wait", waitMs })

const most: Readonly<Record<Counted, number>> = {
  passwords: wrongPasswordsMax,
  tokens: wrongTokensMax,
  account: wrongAccountTokensMax
}

/** The rest of the window; 0 for a window in the future, after the clock was set back. */
const leftMs = ({ fromMs }: ThrottleState, nowMs: number): number =>
  nowMs < fromMs ? 0 : Math.max(0, fromMs + wrongAttemptsWindowMs - nowMs)

const waitMsOf = (state: ThrottleState, of: Counted, nowMs: number): number =>
  state.count >= most[of] ? leftMs(state, nowMs) : 0

/** The attempts that are being checked, without this one and those whose end got lost. */
const othersOf = (
  { checking = [] }: ThrottleState,
  attempt: string | undefined,
  nowMs: number
): NonNullable<ThrottleState["checking"]> =>
  checking.filter((one) =>
    one.attempt !== attempt && one.untilMs > nowMs && one.untilMs <= nowMs + passwordCheckMs
  )

const withChecking = (
  state: ThrottleState,
  checking: NonNullable<ThrottleState["checking"]>
): ThrottleState => {
  const { count, fromMs, tried } = state
  return { _tag: "Counting", count, fromMs, tried, ...checking.length === 0 ? {} : { checking } }
}

/** A reply to the end of the attempt, if the message names one: it is no longer being checked. */
const replyAtEnd = (
  state: ThrottleState,
  attempt: string | undefined,
  waitMs: number,
  nowMs: number
): Decision<ThrottleState, ThrottleReply> =>
  attempt === undefined
    ? stay<ThrottleState>().reply(wait(waitMs))
    : stay<ThrottleState>().becomeInMemory(withChecking(state, othersOf(state, attempt, nowMs)))
      .reply(wait(waitMs))

/** The same attempt is checked by several requests as one: it is one guess. */
const begin = (
  state: ThrottleState,
  of: Counted,
  attempt: string | undefined,
  nowMs: number
): Decision<ThrottleState, ThrottleReply> => {
  const others = othersOf(state, attempt, nowMs)
  const failures = leftMs(state, nowMs) === 0 ? 0 : state.count
  if (failures + others.length >= most[of]) return stay().reply({ ...wait(0), isFull: true })
  if (attempt === undefined) return stay().reply(wait(0))
  const begun = { attempt, untilMs: nowMs + passwordCheckMs }
  return stay<ThrottleState>().becomeInMemory(withChecking(state, [...others, begun]))
    .reply(wait(0))
}

export const throttleTable: BehaviorTable<ThrottleState, ThrottleMessage, ThrottleReply> = {
  Counting: {
    Check: (state, { begins, ends, of }, { nowMs }): Decision<ThrottleState, ThrottleReply> => {
      if (ends !== undefined) {
        const next = withChecking(state, othersOf(state, ends, nowMs))
        return stay<ThrottleState>().becomeInMemory(next).reply(wait(0))
      }
      const waitMs = waitMsOf(state, of, nowMs)
      return waitMs > 0 ? stay().reply(wait(waitMs)) : begin(state, of, begins, nowMs)
    },
    RecordFailure: (state, message, { nowMs }): Decision<ThrottleState, ThrottleReply> => {
      const waitMs = waitMsOf(state, message.of, nowMs)
      if (waitMs > 0) return replyAtEnd(state, message.attempt, waitMs, nowMs)
      const isOver = leftMs(state, nowMs) === 0
      const before = isOver ? [] : state.tried
      if (message.try !== undefined && before.includes(message.try)) {
        // It was counted before.
        return replyAtEnd(state, message.attempt, 0, nowMs)
      }
      const checking = othersOf(state, message.attempt, nowMs)
      const next: ThrottleState = {
        _tag: "Counting",
        count: isOver ? 1 : state.count + 1,
        fromMs: isOver ? nowMs : state.fromMs,
        tried: message.try === undefined ? before : [...before, message.try]
      }
      return stay<ThrottleState>().becomeInMemory(withChecking(next, checking)).reply(wait(0))
    },
    TimerFired: () => stay()
  }
}
