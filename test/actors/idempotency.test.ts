import { array, assert, constantFrom, nat, property, record } from "fast-check"
import { describe, expect, it } from "vitest"
import { idempotency } from "../../actors/idempotency/actor.ts"
import { idempotencyTable as table } from "../../actors/idempotency/decide.ts"
import type { IdempotencyMessage, IdempotencyReply,
  IdempotencyState } from "../../actors/idempotency/protocol.ts"
import { idempotencyAttemptMaxMs, idempotencyRetentionMs } from "../../actors/limits.ts"
import { decider, effectsOf, expectOnlyReply, expectRefused, nowMs, testCells } from "./cells.ts"
import { Model } from "./model.ts"

const decide = decider<IdempotencyState, IdempotencyMessage, IdempotencyReply>(table)

const absent: IdempotencyState = { _tag: "Absent" }
const begun: IdempotencyState = {
  _tag: "Begun",
  attempt: "a1",
  firstAtMs: nowMs,
  attemptAtMs: nowMs
}
const answer = { bodyDigest: "d1", sealed: "s1" }
const finished: IdempotencyState = { _tag: "Done", attempt: "a1", firstAtMs: nowMs, ...answer }

const begin = (attempt: string): IdempotencyMessage => ({ _tag: "Begin", attempt })
const complete = (attempt: string): IdempotencyMessage => ({ _tag: "Complete", attempt, ...answer })
const abandon = (attempt: string): IdempotencyMessage => ({ _tag: "Abandon", attempt })
const timerFired: IdempotencyMessage = { _tag: "TimerFired" }
const proceed = { _tag: "Proceed" }
const acknowledged = { _tag: "Acknowledged" }
const inProgress = { _tag: "InProgress" }

const expires = (state: IdempotencyState) => () => {
  const endsAtMs = nowMs + idempotencyRetentionMs
  const late = decide(state, timerFired, { nowMs: endsAtMs })
  expect(late.removesActor).toBe(true)
  const early = decide(state, timerFired, { nowMs: endsAtMs - 1 })
  expect(effectsOf(early)).toEqual({ timerAtMs: endsAtMs })
}

describe("the idempotency key's table", () => {
  testCells(table, {
    "Absent.Begin": () => {
      const decision = decide(absent, begin("a1"))
      expect(decision.nextState).toEqual(begun)
      expect(decision.durable).toBe(true)
      expect(decision.timerAtMs).toBe(nowMs + idempotencyRetentionMs)
      expect(decision.answer).toEqual(proceed)
    },
    "Absent.Complete": () => expectRefused(decide(absent, complete("a1")), "NotFound"),
    "Absent.Abandon": () => expectOnlyReply(decide(absent, abandon("a1")), acknowledged),
    "Absent.TimerFired": () => expectOnlyReply(decide(absent, timerFired), undefined),

    "Begun.Begin": () => {
      expectOnlyReply(decide(begun, begin("a1")), proceed)
      const last = { nowMs: nowMs + idempotencyAttemptMaxMs - 1 }
      expectOnlyReply(decide(begun, begin("a2"), last), inProgress)
      const lateMs = nowMs + idempotencyAttemptMaxMs
      const late = decide(begun, begin("a2"), { nowMs: lateMs })
      expect(late.nextState).toEqual({ ...begun, attempt: "a2", attemptAtMs: lateMs })
      expect(late.answer).toEqual(proceed)
      expect(decide(begun, begin("a2"), { nowMs: nowMs - 1 }).answer).toEqual(proceed)
      const started: IdempotencyState = { ...begun, attempt: "n1.s1.r1" }
      expect(decide(started, begin("n1.s2.r2")).answer).toEqual(proceed)
      expectOnlyReply(decide(started, begin("n1.s1.r2")), inProgress)
      expectOnlyReply(decide(started, begin("n2.s2.r2")), inProgress)
    },
    "Begun.Complete": () => {
      const decision = decide(begun, complete("a1"))
      expect(decision.nextState).toEqual(finished)
      expect(decision.answer).toEqual(acknowledged)
      expectRefused(decide(begun, complete("a2")), "Superseded")
    },
    "Begun.Abandon": () => {
      const decision = decide(begun, abandon("a1"))
      expect(decision.removesActor).toBe(true)
      expect(decision.answer).toEqual(acknowledged)
      expectRefused(decide(begun, abandon("a2")), "Superseded")
    },
    "Begun.TimerFired": expires(begun),

    "Done.Begin": () => expectOnlyReply(decide(finished, begin("a2")), { _tag: "Done", ...answer }),
    "Done.Complete": () => {
      expectOnlyReply(decide(finished, complete("a1")), acknowledged)
      expectRefused(decide(finished, complete("a2")), "Superseded")
    },
    "Done.Abandon": () => {
      expectOnlyReply(decide(finished, abandon("a1")), acknowledged)
      expectRefused(decide(finished, abandon("a2")), "Superseded")
    },
    "Done.TimerFired": expires(finished)
  })
})

describe("an idempotency key", () => {
  it("lets one attempt at a time through, and answers alike once it is complete", () => {
    const commands = array(
      record({
        does: constantFrom("begin", "complete", "abandon", "restart", "pass"),
        attempt: nat(3),
        ms: constantFrom(1, idempotencyAttemptMaxMs, idempotencyRetentionMs / 3)
      }),
      { maxLength: 40 }
    )
    assert(
      property(commands, (sequence) => {
        const actor = new Model(idempotency)
        let atMs = nowMs
        let holder: string | undefined
        let sinceMs = 0
        let firstMs = 0
        let doneBy: string | undefined
        for (const { does, attempt, ms } of sequence) {
          const id = `a${attempt}`
          if (does === "restart") actor.restart()
          else if (does === "pass") {
            actor.fireTimer(atMs += ms)
            if (atMs >= firstMs + idempotencyRetentionMs) holder = doneBy = undefined
          } else if (does === "begin") {
            const reply = actor.send(begin(id), atMs)
            if (doneBy !== undefined) expect(reply).toEqual({ _tag: "Done", ...answer })
            else if (holder === id) expect(reply).toEqual(proceed)
            else if (holder !== undefined && atMs - sinceMs < idempotencyAttemptMaxMs) {
              expect(reply).toEqual(inProgress)
            } else {
              expect(reply).toEqual(proceed)
              if (holder === undefined) firstMs = atMs
              holder = id
              sinceMs = atMs
            }
          } else {
            const reply = actor.send(does === "complete" ? complete(id) : abandon(id), atMs)
            if (holder === undefined) continue
            if (id !== holder) expect(reply).toMatchObject({ reason: "Superseded" })
            else if (does === "complete") doneBy = holder
            else if (doneBy === undefined) holder = undefined
          }
        }
      }),
      { numRuns: 500 }
    )
  })
})
