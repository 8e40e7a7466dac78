/** What the count of wrong passwords decides. It is in memory only: nothing is written for it. */
import { stay } from "../../runtime/index.ts"
import type { Decision, Table } from "../../runtime/index.ts"
import { wrongTriesMax, wrongTriesWindowMs } from "../limits.ts"
import type { Message, Reply, State } from "./protocol.ts"

const wait = (waitMs: number): Reply => ({ _tag: "Wait", waitMs })

/** What is left of the window; nothing of one in the future, which a clock that ran back leaves. */
const leftMs = ({ fromMs }: State, nowMs: number): number =>
  nowMs < fromMs ? 0 : Math.max(0, fromMs + wrongTriesWindowMs - nowMs)

const waitMsOf = (state: State, nowMs: number): number =>
  state.count >= wrongTriesMax ? leftMs(state, nowMs) : 0

export const throttleTable: Table<State, Message, Reply> = {
  Counting: {
    Look: (state, _message, { nowMs }) => stay().reply(wait(waitMsOf(state, nowMs))),
    Wrong: (state, _message, { nowMs }): Decision<State, Reply> => {
      const waitMs = waitMsOf(state, nowMs)
      if (waitMs > 0) return stay<State>().reply(wait(waitMs))
      const next: State = leftMs(state, nowMs) > 0
        ? { ...state, count: state.count + 1 }
        : { _tag: "Counting", count: 1, fromMs: nowMs }
      return stay<State>().remember(next).reply(wait(0))
    },
    WakeUp: () => stay()
  }
}
