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
const answer = { fingerprint: "f1", sealed: "s1" }
/** The attempt has ended, and its outcome is unknown. */
const doubtful: IdempotencyState = { ...begun, attemptAtMs: 0, isDoubtful: true }
const finished: IdempotencyState = { _tag: "Done", attempt: "a1", firstAtMs: nowMs, ...answer }

const begin = (attempt: string): IdempotencyMessage => ({ _tag: "Begin", attempt })
const complete = (attempt: string): IdempotencyMessage => ({ _tag: "Complete", attempt, ...answer })
const abandon = (attempt: string): IdempotencyMessage => ({ _tag: "Abandon", attempt })
const interrupt = (attempt: string, fingerprint?: string): IdempotencyMessage => ({
  _tag: "Interrupt",
  attempt,
  ...fingerprint === undefined ? {} : { fingerprint }
})
const timerFired: IdempotencyMessage = { _tag: "TimerFired" }
const proceed = { _tag: "Proceed" }
/** An earlier attempt may have stored its deposit. */
const proceedIndeterminate = (firstAtMs: number) => ({
  _tag: "Proceed",
  earlier: { firstAtMs, isCertain: false }
})
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
    "Absent.Interrupt": () => expectOnlyReply(decide(absent, interrupt("a1")), acknowledged),
    "Absent.TimerFired": () => {
      expectOnlyReply(decide(absent, timerFired), undefined)
      expectOnlyReply(decide(absent, timerFired, { isSignal: true, hint: 3 }), undefined)
    },

    "Begun.Begin": () => {
      expectOnlyReply(decide(begun, begin("a1")), proceed)
      const last = { nowMs: nowMs + idempotencyAttemptMaxMs - 1 }
      expectOnlyReply(decide(begun, begin("a2"), last), inProgress)
      const lateMs = nowMs + idempotencyAttemptMaxMs
      const late = decide(begun, begin("a2"), { nowMs: lateMs })
      const next = { ...begun, attempt: "a2", attemptAtMs: lateMs, isDoubtful: true }
      expect(late.nextState).toEqual(next)
      expect(late.answer).toEqual(proceedIndeterminate(nowMs))
      expect(decide(begun, begin("a2"), { nowMs: nowMs - 1 }).answer)
        .toEqual(proceedIndeterminate(nowMs))
      const started: IdempotencyState = { ...begun, attempt: "n1.s1.r1" }
      expect(decide(started, begin("n1.s2.r2")).answer).toEqual(proceedIndeterminate(nowMs))
      expectOnlyReply(decide(started, begin("n1.s1.r2")), inProgress)
      expectOnlyReply(decide(started, begin("n2.s2.r2")), inProgress)
      // After an ambiguous failure the next attempt begins at once, and only with the same request.
      expect(decide(doubtful, begin("a2")).answer).toEqual(proceedIndeterminate(nowMs))
      const known: IdempotencyState = { ...doubtful, fingerprint: "f1" }
      const same: IdempotencyMessage = { _tag: "Begin", attempt: "a2", fingerprint: "f1" }
      expect(decide(known, same).nextState)
        .toEqual({ ...known, attempt: "a2", attemptAtMs: nowMs })
      expectOnlyReply(decide(known, { ...same, fingerprint: "f2" }), { _tag: "OtherRequest" })
      const stored = { ...known, stored: { n: 7 } }
      expect(decide(stored, same).answer)
        .toEqual({ ...proceed, earlier: { n: 7, firstAtMs: nowMs, isCertain: true } })
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
      // The refused attempt changed nothing; an earlier one may have.
      const again: IdempotencyState = { ...begun, isDoubtful: true }
      expect(decide(again, abandon("a1"))).toMatchObject({
        nextState: doubtful,
        removesActor: false
      })
      const stored: IdempotencyState = { ...begun, stored: {} }
      expect(decide(stored, abandon("a1")).nextState).toEqual({ ...doubtful, stored: {} })
    },
    "Begun.Interrupt": () => {
      const decision = decide(begun, interrupt("a1"))
      expect(decision.nextState).toEqual(doubtful)
      expect(decision.answer).toEqual(acknowledged)
      expect(decide(begun, interrupt("a1", "f1")).nextState)
        .toEqual({ ...doubtful, fingerprint: "f1" })
      expectRefused(decide(begun, interrupt("a2")), "Superseded")
    },
    "Begun.TimerFired": () => {
      expires(begun)()
      const signal = { isSignal: true, isSignalDurable: true }
      expect(effectsOf(decide(begun, timerFired, { ...signal, hint: 3 })))
        .toEqual({ nextState: { ...begun, stored: { n: 3 } } })
      expect(decide(doubtful, timerFired, signal).nextState).toEqual({ ...doubtful, stored: {} })
      // The same signal once more, without its hint.
      const stored: IdempotencyState = { ...begun, stored: { n: 3 } }
      expect(decide(stored, timerFired, signal).nextState).toEqual(stored)
      // The signal of a lost commit does not prove that the deposit was stored.
      for (const state of [begun, doubtful, stored]) {
        expectOnlyReply(decide(state, timerFired, { isSignal: true }), undefined)
      }
    },

    "Done.Begin": () => expectOnlyReply(decide(finished, begin("a2")), { _tag: "Done", ...answer }),
    "Done.Complete": () => {
      expectOnlyReply(decide(finished, complete("a1")), acknowledged)
      expectRefused(decide(finished, complete("a2")), "Superseded")
    },
    "Done.Abandon": () => {
      expectOnlyReply(decide(finished, abandon("a1")), acknowledged)
      expectRefused(decide(finished, abandon("a2")), "Superseded")
    },
    "Done.Interrupt": () => {
      expectOnlyReply(decide(finished, interrupt("a1")), acknowledged)
      expectRefused(decide(finished, interrupt("a2")), "Superseded")
    },
    "Done.TimerFired": () => {
      expires(finished)()
      expectOnlyReply(decide(finished, timerFired, { isSignal: true, hint: 3 }), undefined)
    }
  })
})

describe("an idempotency key", () => {
  it("keeps the key of an ambiguous attempt until its retention ends", () => {
    const commands = array(constantFrom("refused", "ambiguous", "restart", "lost"), {
      minLength: 1,
      maxLength: 12
    })
    assert(
      property(commands, (sequence) => {
        const actor = new Model(idempotency)
        let isKept = false
        let atMs = nowMs
        sequence.forEach((outcome, at) => {
          const attempt = `a${at}`
          const other: IdempotencyMessage = { _tag: "Begin", attempt: "b", fingerprint: "other" }
          expect(actor.send({ _tag: "Begin", attempt, fingerprint: "f1" }, atMs))
            .toEqual(isKept ? proceedIndeterminate(nowMs) : proceed)
          if (outcome === "restart") actor.restart()
          if (outcome === "lost" || outcome === "restart") atMs += idempotencyAttemptMaxMs
          else actor.send(outcome === "refused" ? abandon(attempt) : interrupt(attempt), atMs)
          isKept ||= outcome !== "refused"
          if (isKept) expect(actor.send(other, atMs)).toEqual({ _tag: "OtherRequest" })
          else expect(actor.state).toEqual(absent)
        })
        expect(actor.timerAtMs).toBe(isKept ? nowMs + idempotencyRetentionMs : null)
      }),
      { numRuns: 200 }
    )
  })

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
        // A key that a second attempt has taken over stays when that one is abandoned.
        let isUsed = false
        let isDoubtful = false
        // An attempt that has ended never begins again.
        let ended = 0
        for (const { does, attempt, ms } of sequence) {
          const id = `a${attempt}-${ended}`
          if (does === "restart") actor.restart()
          else if (does === "pass") {
            actor.fireTimer(atMs += ms)
            if (atMs >= firstMs + idempotencyRetentionMs) {
              holder = doneBy = undefined
              isUsed = isDoubtful = false
            }
          } else if (does === "begin") {
            const reply = actor.send(begin(id), atMs)
            if (doneBy !== undefined) expect(reply).toEqual({ _tag: "Done", ...answer })
            else if (holder === id) {
              expect(reply).toEqual(isDoubtful ? proceedIndeterminate(firstMs) : proceed)
            } else if (holder !== undefined && atMs - sinceMs < idempotencyAttemptMaxMs) {
              expect(reply).toEqual(inProgress)
            } else {
              expect(reply).toEqual(isUsed ? proceedIndeterminate(firstMs) : proceed)
              isDoubtful = isUsed
              if (!isUsed) firstMs = atMs
              isUsed = true
              holder = id
              sinceMs = atMs
            }
          } else {
            const reply = actor.send(does === "complete" ? complete(id) : abandon(id), atMs)
            if (holder === undefined) continue
            if (id !== holder) expect(reply).toMatchObject({ reason: "Superseded" })
            else if (does === "complete") doneBy = holder
            else if (doneBy === undefined) {
              holder = undefined
              isUsed = isDoubtful
              ended++
            }
          }
        }
      }),
      { numRuns: 500 }
    )
  })
})
