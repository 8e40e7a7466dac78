import { array, assert, integer, property, tuple } from "fast-check"
import { describe, expect, it } from "vitest"
import { passwordCheckMs, wrongAccountTokensMax, wrongAttemptsWindowMs, wrongPasswordsMax,
  wrongTokensMax } from "../../actors/limits.ts"
import { throttle } from "../../actors/throttle/actor.ts"
import { throttleTable as table } from "../../actors/throttle/decide.ts"
import type { Counted, ThrottleMessage, ThrottleReply,
  ThrottleState } from "../../actors/throttle/protocol.ts"
import { decider, effectsOf, expectOnlyReply, nowMs, testCells } from "./cells.ts"

const decide = decider<ThrottleState, ThrottleMessage, ThrottleReply>(table)
const tried = (
  count: number,
  fromMs = nowMs,
  tried: ReadonlyArray<string> = []
): ThrottleState => ({
  _tag: "Counting",
  count,
  fromMs,
  tried
})
const wait = (waitMs: number) => ({ _tag: "Wait", waitMs })
const wrong: ThrottleMessage = { _tag: "RecordFailure", of: "passwords" }
const wrongToken = (one: string): ThrottleMessage => ({
  _tag: "RecordFailure",
  of: "tokens",
  try: one
})
const { initial } = throttle
const last = { nowMs: nowMs + wrongAttemptsWindowMs - 1 }
const over = { nowMs: nowMs + wrongAttemptsWindowMs }
const most: ReadonlyArray<readonly [Counted, number]> = [
  ["passwords", wrongPasswordsMax],
  ["tokens", wrongTokensMax],
  ["account", wrongAccountTokensMax]
]

describe("the throttle's table", () => {
  testCells(table, {
    "Counting.Check": () => {
      for (const [of, max] of most) {
        const look: ThrottleMessage = { _tag: "Check", of }
        expectOnlyReply(decide(initial, look), wait(0))
        expectOnlyReply(decide(tried(max - 1), look), wait(0))
        expectOnlyReply(decide(tried(max), look), wait(wrongAttemptsWindowMs))
        expectOnlyReply(decide(tried(max), look, last), wait(1))
        expectOnlyReply(decide(tried(max), look, over), wait(0))
        expectOnlyReply(decide(tried(max), look, { nowMs: nowMs - 1 }), wait(0))
      }
    },
    "Counting.RecordFailure": () => {
      const first = decide(initial, wrong)
      expect([first.answer, first.nextState]).toEqual([wait(0), tried(1)])
      expect(decide(tried(1), wrong, last).nextState).toEqual(tried(2))
      expect(decide(tried(2), wrong, over).nextState).toEqual(tried(1, over.nowMs))
      // None of it is written.
      expect([first.durable, effectsOf(first)]).toEqual([false, { nextState: tried(1) }])
      expectOnlyReply(decide(tried(wrongPasswordsMax), wrong, last), wait(1))
      // The same token again counts once, until the window is over.
      expect(decide(initial, wrongToken("a")).nextState).toEqual(tried(1, nowMs, ["a"]))
      const one = tried(1, nowMs, ["a"])
      expectOnlyReply(decide(one, wrongToken("a"), last), wait(0))
      expect(decide(one, wrongToken("b"), last).nextState).toEqual(tried(2, nowMs, ["a", "b"]))
      expect(decide(one, wrongToken("a"), over).nextState).toEqual(tried(1, over.nowMs, ["a"]))
    },
    "Counting.TimerFired": () => expectOnlyReply(decide(initial, { _tag: "TimerFired" }), undefined)
  })

  it.each(most)("lets so many %s be wrong within any window, and no more", (of, max) => {
    let state = initial
    for (let n = 0; n < max; n += 1) {
      expect(decide(state, { _tag: "Check", of }).answer).toEqual(wait(0))
      state = decide(state, { _tag: "RecordFailure", of, try: `${n}` }).nextState ?? state
    }
    expect(decide(state, { _tag: "Check", of }).answer).toEqual(wait(wrongAttemptsWindowMs))
  })

  const begin = (one: string): ThrottleMessage => ({
    _tag: "Check",
    of: "passwords",
    begins: one
  })
  const after = (state: ThrottleState, message: ThrottleMessage, atMs = nowMs): ThrottleState =>
    decide(state, message, { nowMs: atMs }).nextState ?? state
  /** So many attempts that are being checked. */
  const checking = (count: number): ThrottleState =>
    Array.from({ length: count }, (_, n) => begin(`${n}`)).reduce(
      (state, one) => after(state, one),
      initial
    )

  it("lets so many attempts be checked at once as may be wrong, until one ends", () => {
    const full = checking(wrongPasswordsMax)
    const isFull = { ...wait(0), isFull: true }
    for (const message of [begin("another"), { _tag: "Check", of: "passwords" } as const]) {
      expectOnlyReply(decide(full, message), isFull)
    }
    // The same attempt in another request is no further guess.
    expect(decide(full, begin("3")).answer).toEqual(wait(0))
    const ended = after(full, { _tag: "Check", of: "passwords", ends: "3" })
    expect(decide(ended, begin("another")).answer).toEqual(wait(0))
    expect(decide(after(ended, begin("another")), begin("one more")).answer).toEqual(isFull)
    // An end that got lost.
    const lost = { nowMs: nowMs + passwordCheckMs }
    expect(decide(full, begin("another"), lost).answer).toEqual(wait(0))
    expect(decide(full, begin("another"), { nowMs: nowMs - 1 }).answer).toEqual(wait(0))
  })

  it("counts a wrong attempt in place of its check", () => {
    let state = checking(wrongPasswordsMax)
    for (let n = 0; n < wrongPasswordsMax; n += 1) {
      state = after(state, { _tag: "RecordFailure", of: "passwords", attempt: `${n}` })
      const { answer } = decide(state, begin("another"))
      expect(answer).toEqual(
        n < wrongPasswordsMax - 1
          ? { ...wait(0), isFull: true }
          : wait(wrongAttemptsWindowMs)
      )
    }
    expect(state).toEqual(tried(wrongPasswordsMax))
    // After the window nothing of them counts.
    expect(decide(state, begin("another"), over).answer).toEqual(wait(0))
  })

  it("ends the check of an attempt that was counted before", () => {
    const counted = tried(1, nowMs, ["a"])
    const again = after(counted, { _tag: "Check", of: "tokens", begins: "a" })
    expect(again).toMatchObject({ checking: [{ attempt: "a" }] })
    const wrongAgain = { _tag: "RecordFailure", of: "tokens", try: "a", attempt: "a" } as const
    const recorded = decide(again, wrongAgain)
    expect([recorded.answer, recorded.nextState]).toEqual([wait(0), counted])
  })

  it("ends the check of an attempt that is wrong when no more may be", () => {
    const begun = after(tried(wrongTokensMax - 1), { _tag: "Check", of: "tokens", begins: "a" })
    // Another one was wrong meanwhile.
    const spent = after(begun, wrongToken("b"))
    expect(spent).toMatchObject({ count: wrongTokensMax, checking: [{ attempt: "a" }] })
    const wrongNow = { _tag: "RecordFailure", of: "tokens", try: "a", attempt: "a" } as const
    const recorded = decide(spent, wrongNow)
    expect([recorded.answer, recorded.nextState])
      .toEqual([wait(wrongAttemptsWindowMs), tried(wrongTokensMax, nowMs, ["b"])])
  })

  it("never asks for a longer wait than the window, and keeps no more than it counts", () => {
    const step = integer({ min: -1_000, max: wrongAttemptsWindowMs / 8 })
    assert(property(array(tuple(step, integer({ min: 0, max: 60 })), { maxLength: 200 }), (all) => {
      let state = initial
      let atMs = nowMs
      for (const [stepMs, token] of all) {
        atMs += stepMs
        const decision = decide(state, wrongToken(`${token}`), { nowMs: atMs })
        state = decision.nextState ?? state
        const { answer } = decide(state, { _tag: "Check", of: "tokens" }, { nowMs: atMs })
        expect(answer).toSatisfy(({ waitMs }: ThrottleReply) =>
          waitMs >= 0 && waitMs <= wrongAttemptsWindowMs
        )
        expect(state._tag === "Counting" && state.tried.length).toBeLessThanOrEqual(wrongTokensMax)
      }
    }))
  })
})
