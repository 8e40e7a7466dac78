/** The decisions of a counter of wrong attempts. The count is in memory only. */
import { type BehaviorTable, type Decision, stay } from "../../runtime/index.ts"
import { wrongAccountTokensMax, wrongAttemptsWindowMs, wrongPasswordsMax,
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

export const throttleTable: BehaviorTable<ThrottleState, ThrottleMessage, ThrottleReply> = {
  Counting: {
    Check: (state, { of }, { nowMs }) => stay().reply(wait(waitMsOf(state, of, nowMs))),
    RecordFailure: (state, message, { nowMs }): Decision<ThrottleState, ThrottleReply> => {
      const waitMs = waitMsOf(state, message.of, nowMs)
      if (waitMs > 0) return stay<ThrottleState>().reply(wait(waitMs))
      const isOver = leftMs(state, nowMs) === 0
      const before = isOver ? [] : state.tried
      if (message.try !== undefined && before.includes(message.try)) return stay().reply(wait(0))
      const next: ThrottleState = {
        _tag: "Counting",
        count: isOver ? 1 : state.count + 1,
        fromMs: isOver ? nowMs : state.fromMs,
        tried: message.try === undefined ? before : [...before, message.try]
      }
      return stay<ThrottleState>().becomeInMemory(next).reply(wait(0))
    },
    TimerFired: () => stay()
  }
}
