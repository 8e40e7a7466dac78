import { describe, expect, it } from "vitest"
import { wrongTriesMax, wrongTriesWindowMs } from "../../actors/limits.ts"
import { throttle } from "../../actors/throttle/actor.ts"
import { throttleTable as table } from "../../actors/throttle/decide.ts"
import type { Message, Reply, State } from "../../actors/throttle/protocol.ts"
import { decider, effectsOf, expectOnlyReply, nowMs, testCells } from "./cells.ts"

const decide = decider<State, Message, Reply>(table)
const tried = (count: number, fromMs = nowMs): State => ({ _tag: "Counting", count, fromMs })
const wait = (waitMs: number) => ({ _tag: "Wait", waitMs })
const wrong: Message = { _tag: "Wrong" }
const look: Message = { _tag: "Look" }
const { initial } = throttle
const last = { nowMs: nowMs + wrongTriesWindowMs - 1 }
const over = { nowMs: nowMs + wrongTriesWindowMs }

describe("the throttle's table", () => {
  testCells(table, {
    "Counting.Look": () => {
      expectOnlyReply(decide(initial, look), wait(0))
      expectOnlyReply(decide(tried(wrongTriesMax - 1), look), wait(0))
      expectOnlyReply(decide(tried(wrongTriesMax), look), wait(wrongTriesWindowMs))
      expectOnlyReply(decide(tried(wrongTriesMax), look, last), wait(1))
      expectOnlyReply(decide(tried(wrongTriesMax), look, over), wait(0))
      expectOnlyReply(decide(tried(wrongTriesMax), look, { nowMs: nowMs - 1 }), wait(0))
    },
    "Counting.Wrong": () => {
      const first = decide(initial, wrong)
      expect([first.answer, first.nextState]).toEqual([wait(0), tried(1)])
      expect(decide(tried(1), wrong, last).nextState).toEqual(tried(2))
      expect(decide(tried(2), wrong, over).nextState).toEqual(tried(1, over.nowMs))
      // None of it is written.
      expect([first.durable, effectsOf(first)]).toEqual([false, { nextState: tried(1) }])
      expectOnlyReply(decide(tried(wrongTriesMax), wrong, last), wait(1))
    },
    "Counting.WakeUp": () => expectOnlyReply(decide(initial, { _tag: "WakeUp" }), undefined)
  })

  it("lets so many be wrong within any window, and no more", () => {
    let state = initial
    for (let n = 0; n < wrongTriesMax; n += 1) {
      expect(decide(state, look).answer).toEqual(wait(0))
      state = decide(state, wrong).nextState ?? state
    }
    expect(decide(state, look).answer).toEqual(wait(wrongTriesWindowMs))
  })
})
