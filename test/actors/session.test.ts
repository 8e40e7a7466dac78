import { Effect } from "effect"
import { array, assert, constantFrom, nat, oneof, property, record } from "fast-check"
import { describe, expect, it, vi } from "vitest"
import { answerCharsMax, entryRemovalRetryMs, idempotencyRetentionMs } from "../../actors/limits.ts"
import { session } from "../../actors/session/actor.ts"
import { bridge, type BridgeStep } from "../../actors/session/bridge.ts"
import { sessionTable } from "../../actors/session/decide.ts"
import type { SessionAction, SessionMessage, SessionReply,
  SessionState } from "../../actors/session/protocol.ts"
import type { Variant } from "../../runtime/index.ts"
import { decider, effectsOf, expectOnlyReply, expectRefused, nowMs, testCells } from "./cells.ts"
import { Model } from "./model.ts"

const retentionMs = 30 * 24 * 60 * 60 * 1000
const table = sessionTable(retentionMs)
const decide = decider<SessionState, SessionMessage, SessionReply, SessionAction>(table)

const absent: SessionState = { _tag: "Absent" }
const deleted: SessionState = { _tag: "Deleted", deletedAtMs: nowMs }
const known = { requestId: "r1", startedAtMs: nowMs, version: 1 }
const name = { text: "Arthur" }
const quest = { text: "To seek the Grail", href: "/content/1" }
const right = { text: "An African or a European one?" }
const awaitingName: SessionState = { _tag: "AwaitingName", ...known }
const awaitingQuest: SessionState = { _tag: "AwaitingQuest", ...known, name }
const awaitingHard: SessionState = { _tag: "AwaitingHardQuestion", ...known, name, quest }
const crossed: SessionState = { _tag: "Crossed", ...known, name, quest, hard_question: right }
const cast: SessionState = { _tag: "Cast", ...known, name, quest, hard_question: { text: "11" } }

const anyone = { admin: false }
const patsy = { account: "patsy", admin: false }
const stranger = { account: "tim", admin: false }
const admin = { account: "admin", admin: true }
const start: Variant<SessionMessage, "Start"> = { _tag: "Start", requestId: "r1", continue: "true" }
const answer = (step: BridgeStep, text: string): Variant<SessionMessage, "Answer"> => ({
  _tag: "Answer",
  step,
  text,
  caller: anyone
})
const read = (step: BridgeStep): SessionMessage => ({ _tag: "ReadAnswer", step })
const describeIt: SessionMessage = { _tag: "Describe" }
const remove: Variant<SessionMessage, "Delete"> = { _tag: "Delete", caller: anyone }
const timerFired: SessionMessage = { _tag: "TimerFired" }
const entryRemoved: SessionMessage = { _tag: "EntryRemoved" }
/** What a recorded answer changes besides the answer. */
const changed = { version: 2, changedAtMs: nowMs }
const confused = { _tag: "Rejected", p: bridge.confused, cast: false }

const askedName = "What is your name?"
const askedQuest = "What is your quest?"
const askedSwallow = "What is the air-speed velocity of an unladen swallow?"
const viewOf = (status: string, p: string, recorded: ReadonlyArray<BridgeStep>) => ({
  status,
  p,
  recorded,
  startedAtMs: nowMs,
  version: 1
})
const views = {
  AwaitingName: viewOf("name", askedName, []),
  AwaitingQuest: viewOf("quest", askedQuest, ["name"]),
  AwaitingHardQuestion: viewOf("hard_question", askedSwallow, ["name", "quest"]),
  Crossed: viewOf("crossed", "Right. Off you go.", ["name", "quest", "hard_question"]),
  Cast: viewOf("cast", bridge.cast, ["name", "quest", "hard_question"])
}

const refusesAll = (state: SessionState, reason: string) => ({
  Answer: () => expectRefused(decide(state, answer("name", "Arthur")), reason),
  Describe: () => expectRefused(decide(state, describeIt), reason),
  ReadAnswer: () => expectRefused(decide(state, read("name")), reason),
  Delete: () => expectRefused(decide(state, remove), reason),
  EntryRemoved: () => expectOnlyReply(decide(state, entryRemoved), undefined),
  TimerFired: () => expectOnlyReply(decide(state, timerFired), undefined)
})

/** The end of a session: its entry is removed, and it is forgotten after as long again. */
const expectEnd = (decision: ReturnType<typeof decide>, atMs: number) => {
  expect(decision.nextState).toEqual({ _tag: "Deleted", deletedAtMs: atMs })
  expect(decision.durable).toBe(true)
  expect(decision.timerAtMs).toBe(atMs + retentionMs)
  expect(decision.actions).toEqual([{ _tag: "RemoveEntry" }])
}

/** What is the same in every session that is there, but for what it shows. */
const present = (state: SessionState & { readonly _tag: keyof typeof views }) => ({
  Start: () => {
    expectOnlyReply(decide(state, start), { _tag: "Started", view: views[state._tag] })
    expectRefused(decide(state, { ...start, requestId: "r2" }), "Taken")
  },
  Describe: () =>
    expectOnlyReply(decide(state, describeIt), { _tag: "Described", view: views[state._tag] }),
  ReadAnswer: () => {
    const { recorded } = views[state._tag]
    for (const step of ["name", "quest", "hard_question"] as const) {
      if (recorded.includes(step)) {
        expect(decide(state, read(step)).answer).toMatchObject({ _tag: "Recorded" })
        expect(effectsOf(decide(state, read(step)))).toBeUndefined()
      } else expectRefused(decide(state, read(step)), "NotFound")
    }
  },
  Delete: () => {
    const decision = decide(state, remove)
    expectEnd(decision, nowMs)
    expect(decision.answer).toEqual({ _tag: "Done" })
    expectRefused(decide(state, { ...remove, ifVersion: 9 }), "PreconditionFailed")
    expect(decide(state, { ...remove, ifVersion: 1 }).nextState).toEqual(deleted)
    const owned = { ...state, owner: "patsy" }
    expectRefused(decide(owned, remove), "Unauthenticated")
    expectRefused(decide(owned, { ...remove, caller: stranger }), "Forbidden")
    for (const caller of [patsy, admin]) {
      expect(decide(owned, { ...remove, caller }).nextState)
        .toEqual({ ...deleted, owner: "patsy" })
    }
  },
  EntryRemoved: () => expectOnlyReply(decide(state, entryRemoved), undefined),
  TimerFired: () => {
    const expiresAtMs = nowMs + retentionMs
    // A timer may fire early; the next one is set.
    const early = decide(state, timerFired, { nowMs: expiresAtMs - 1 })
    expect(effectsOf(early)).toEqual({ timerAtMs: expiresAtMs })
    expectEnd(decide(state, timerFired, { nowMs: expiresAtMs }), expiresAtMs)
    const later = { ...state, changedAtMs: nowMs + 5 }
    expect(effectsOf(decide(later, timerFired, { nowMs: expiresAtMs })))
      .toEqual({ timerAtMs: expiresAtMs + 5 })
    expectEnd(decide(later, timerFired, { nowMs: expiresAtMs + 5 }), expiresAtMs + 5)
  }
})
const ended = (state: SessionState) => () => {
  for (const step of ["name", "quest", "hard_question"] as const) {
    expectRefused(decide(state, answer(step, "Robin")), "Ended")
  }
}
const unfit = (state: SessionState, step: BridgeStep) => {
  expectRefused(decide(state, { ...answer(step, "x"), ifVersion: 9 }), "PreconditionFailed")
  expectOnlyReply(decide(state, { ...answer(step, "x"), continue: "confused" }), confused)
  expectRefused(decide(state, answer(step, " \n")), "Invalid")
  expectRefused(decide(state, answer(step, "x".repeat(answerCharsMax + 1))), "Invalid")
  const owned = { ...state, owner: "patsy" }
  for (const each of ["name", "quest", "hard_question"] as const) {
    // Whoever may not answer learns nothing of the order.
    expectRefused(decide(owned, answer(each, "x")), "Unauthenticated")
    expectRefused(decide(owned, { ...answer(each, "x"), caller: stranger }), "Forbidden")
  }
  for (const caller of [patsy, admin]) {
    expect(decide(owned, { ...answer(step, "x"), caller }).nextState)
      .toMatchObject({ owner: "patsy", version: 2 })
  }
}

const rows = {
  absent: refusesAll(absent, "NotFound"),
  name: present(awaitingName),
  quest: present(awaitingQuest),
  hard: present(awaitingHard),
  crossed: present(crossed),
  cast: present(cast),
  deleted: refusesAll(deleted, "Gone")
}

describe("the session's table", () => {
  it("compares the answers of an ended session no more", () => {
    const normalize = vi.spyOn(String.prototype, "normalize")
    try {
      for (const state of [crossed, cast]) decide(state, describeIt)
      expect(normalize.mock.contexts).toEqual([])
      decide(awaitingHard, describeIt)
      expect(normalize.mock.contexts).not.toEqual([])
    } finally {
      normalize.mockRestore()
    }
  })

  testCells(table, {
    "Absent.Start": () => {
      const decision = decide(absent, start)
      expect(decision.nextState).toEqual(awaitingName)
      expect(decision.durable).toBe(true)
      expect(decision.timerAtMs).toBe(nowMs + retentionMs)
      expect(decision.answer).toEqual({ _tag: "Started", view: views.AwaitingName })
      expect(decide(absent, { ...start, owner: "patsy" }).nextState)
        .toEqual({ ...awaitingName, owner: "patsy" })
      expectOnlyReply(decide(absent, { ...start, continue: "confused" }), confused)
      expectOnlyReply(decide(absent, { _tag: "Start", requestId: "r1" }), confused)
    },
    "Absent.Answer": rows.absent.Answer,
    "Absent.Describe": rows.absent.Describe,
    "Absent.ReadAnswer": rows.absent.ReadAnswer,
    "Absent.Delete": rows.absent.Delete,
    "Absent.EntryRemoved": rows.absent.EntryRemoved,
    "Absent.TimerFired": rows.absent.TimerFired,

    "AwaitingName.Start": rows.name.Start,
    "AwaitingName.Answer": () => {
      const decision = decide(awaitingName, answer("name", "Arthur"))
      expect(decision.nextState).toEqual({ ...awaitingQuest, ...changed })
      const later = decide(awaitingName, answer("name", "Arthur"), { nowMs: nowMs + 7 })
      expect(later.nextState).toMatchObject({ startedAtMs: nowMs, changedAtMs: nowMs + 7 })
      expect(later.timerAtMs).toBe(nowMs + 7 + retentionMs)
      expect(decision.answer)
        .toEqual({ _tag: "Answered", created: true, view: { ...views.AwaitingQuest, version: 2 } })
      expectRefused(decide(awaitingName, answer("quest", "x")), "OutOfOrder")
      expectRefused(decide(awaitingName, answer("hard_question", "x")), "OutOfOrder")
      unfit(awaitingName, "name")
    },
    "AwaitingName.Describe": rows.name.Describe,
    "AwaitingName.ReadAnswer": rows.name.ReadAnswer,
    "AwaitingName.Delete": rows.name.Delete,
    "AwaitingName.EntryRemoved": rows.name.EntryRemoved,
    "AwaitingName.TimerFired": rows.name.TimerFired,

    "AwaitingQuest.Start": rows.quest.Start,
    "AwaitingQuest.Answer": () => {
      const decision = decide(awaitingQuest, { ...answer("quest", quest.text), href: quest.href })
      expect(decision.nextState).toEqual({ ...awaitingHard, ...changed })
      expect(decision.answer).toMatchObject({ created: true, view: { status: "hard_question" } })
      const again = decide(awaitingQuest, answer("name", "Robin"))
      expect(again.nextState).toEqual({ ...awaitingQuest, ...changed, name: { text: "Robin" } })
      expect(again.answer).toMatchObject({ created: false, view: { status: "quest" } })
      expectRefused(decide(awaitingQuest, answer("hard_question", "x")), "OutOfOrder")
      unfit(awaitingQuest, "quest")
      unfit(awaitingQuest, "name")
    },
    "AwaitingQuest.Describe": rows.quest.Describe,
    "AwaitingQuest.ReadAnswer": rows.quest.ReadAnswer,
    "AwaitingQuest.Delete": rows.quest.Delete,
    "AwaitingQuest.EntryRemoved": rows.quest.EntryRemoved,
    "AwaitingQuest.TimerFired": rows.quest.TimerFired,

    "AwaitingHardQuestion.Start": rows.hard.Start,
    "AwaitingHardQuestion.Answer": () => {
      const good = decide(awaitingHard, answer("hard_question", right.text))
      expect(good.nextState).toEqual({ ...crossed, ...changed })
      expect(good.answer).toMatchObject({
        _tag: "Answered",
        created: true,
        view: { status: "crossed", p: "Right. Off you go." }
      })
      const bad = decide(awaitingHard, answer("hard_question", "11"))
      expect(bad.nextState).toEqual({ ...cast, ...changed })
      expect(bad.durable).toBe(true)
      expect(bad.timerAtMs).toBe(nowMs + retentionMs)
      expect(bad.answer).toEqual({ _tag: "Rejected", p: bridge.cast, cast: true })
      const robin = decide(awaitingHard, answer("name", "Sir Robin"))
      expect(robin.nextState).toEqual({ ...awaitingHard, ...changed, name: { text: "Sir Robin" } })
      expect(robin.answer)
        .toMatchObject({ created: false, view: { p: "What is the capital of Assyria?" } })
      expect(decide(awaitingHard, answer("quest", "Home")).nextState)
        .toEqual({ ...awaitingHard, ...changed, quest: { text: "Home" } })
      unfit(awaitingHard, "hard_question")
    },
    "AwaitingHardQuestion.Describe": rows.hard.Describe,
    "AwaitingHardQuestion.ReadAnswer": rows.hard.ReadAnswer,
    "AwaitingHardQuestion.Delete": rows.hard.Delete,
    "AwaitingHardQuestion.EntryRemoved": rows.hard.EntryRemoved,
    "AwaitingHardQuestion.TimerFired": rows.hard.TimerFired,

    "Crossed.Start": rows.crossed.Start,
    "Crossed.Answer": ended(crossed),
    "Crossed.Describe": rows.crossed.Describe,
    "Crossed.ReadAnswer": rows.crossed.ReadAnswer,
    "Crossed.Delete": rows.crossed.Delete,
    "Crossed.EntryRemoved": rows.crossed.EntryRemoved,
    "Crossed.TimerFired": rows.crossed.TimerFired,

    "Cast.Start": rows.cast.Start,
    "Cast.Answer": ended(cast),
    "Cast.Describe": rows.cast.Describe,
    "Cast.ReadAnswer": rows.cast.ReadAnswer,
    "Cast.Delete": rows.cast.Delete,
    "Cast.EntryRemoved": rows.cast.EntryRemoved,
    "Cast.TimerFired": rows.cast.TimerFired,

    "Deleted.Start": () => expectRefused(decide(deleted, start), "Gone"),
    "Deleted.Answer": rows.deleted.Answer,
    "Deleted.Describe": rows.deleted.Describe,
    "Deleted.ReadAnswer": rows.deleted.ReadAnswer,
    "Deleted.Delete": rows.deleted.Delete,
    "Deleted.EntryRemoved": () => {
      const forgottenAtMs = nowMs + retentionMs
      const early = decide(deleted, entryRemoved, { nowMs: forgottenAtMs - 1 })
      expectOnlyReply(early, undefined)
      expect(decide(deleted, entryRemoved, { nowMs: forgottenAtMs }).removesActor).toBe(true)
      // No Idempotency-Key may begin a session again.
      const brief = decider<SessionState, SessionMessage, SessionReply, SessionAction>(
        sessionTable(1000)
      )
      const keyEndsAtMs = nowMs + idempotencyRetentionMs
      expectOnlyReply(brief(deleted, entryRemoved, { nowMs: keyEndsAtMs - 1 }), undefined)
      expect(brief(deleted, entryRemoved, { nowMs: keyEndsAtMs }).removesActor).toBe(true)
    },
    "Deleted.TimerFired": () => {
      const forgottenAtMs = nowMs + retentionMs
      expect(effectsOf(decide(deleted, timerFired, { nowMs: forgottenAtMs - 1 })))
        .toEqual({ timerAtMs: forgottenAtMs })
      // The entry first: a session that is forgotten cannot remove it.
      expect(effectsOf(decide(deleted, timerFired, { nowMs: forgottenAtMs }))).toEqual({
        timerAtMs: forgottenAtMs + entryRemovalRetryMs,
        actions: [{ _tag: "RemoveEntry" }]
      })
    }
  })
})

/** The records of a store in which nothing is. */
const records = { get: () => Effect.succeed(undefined), write: () => Effect.void }

describe("a session", () => {
  const steps = constantFrom<BridgeStep>("name", "quest", "hard_question")
  const texts = constantFrom("Arthur", "Robin", "Galahad", "Nineveh", "blue", "24 mph")
  const commands = array(
    oneof(
      { weight: 6, arbitrary: record({ step: steps, text: texts }) },
      constantFrom("restart" as const)
    ),
    { maxLength: 12 }
  )
  const rightFor = (of: string): string =>
    of === "Robin" ? "Nineveh" : of === "Galahad" ? "blue" : "24 mph"

  it("equals a simple model in any interleaving of answers and restarts", () => {
    assert(
      property(commands, (sequence) => {
        const actor = new Model(session({ records, sessionRetentionMs: retentionMs }))
        actor.send(start, nowMs)
        const given: Partial<Record<BridgeStep, string>> = {}
        let end: "crossed" | "cast" | undefined
        for (const command of sequence) {
          if (command === "restart") actor.restart()
          else {
            const { step, text } = command
            const missing = (["name", "quest", "hard_question"] as const)
              .find((one) => given[one] === undefined)
            const reply = actor.send(answer(step, text), nowMs)
            if (end !== undefined) expect(reply).toMatchObject({ reason: "Ended" })
            else if (given[step] === undefined && step !== missing) {
              expect(reply).toMatchObject({ reason: "OutOfOrder" })
            } else {
              given[step] = text
              if (step === "hard_question") {
                end = text === rightFor(given.name ?? "") ? "crossed" : "cast"
              }
            }
          }
          const next = (["name", "quest", "hard_question"] as const)
            .find((one) => given[one] === undefined)
          expect(actor.send(describeIt, nowMs))
            .toMatchObject({ view: { status: end ?? next, recorded: Object.keys(given) } })
        }
      }),
      { numRuns: 500 }
    )
  })

  it("expires a retention after its last change, with its entry, and is forgotten later", () => {
    const hourMs = 60 * 60 * 1000
    const events = array(
      oneof(
        { weight: 4, arbitrary: record({ waitMs: nat(40 * 24 * hourMs) }) },
        { weight: 4, arbitrary: record({ step: steps, text: texts }) },
        constantFrom(
          "restart" as const,
          "delete" as const,
          "delete and crash" as const,
          "store fails" as const
        )
      ),
      { maxLength: 20 }
    )
    assert(
      property(events, (sequence) => {
        const actor = new Model(session({ records, sessionRetentionMs: retentionMs }))
        actor.send(start, nowMs)
        let atMs = nowMs
        let changedAtMs = nowMs
        let endedAtMs: number | undefined
        let hasEntry = true
        let storeFails = false
        const settle = () => {
          // Each attempt to remove the entry fails, or ends with a message.
          for (let round = 0; round < 4; round++) {
            actor.fireTimer(atMs)
            for (const { _tag } of actor.actions.splice(0)) {
              expect(_tag).toBe("RemoveEntry")
              if (storeFails) continue
              hasEntry = false
              actor.send(entryRemoved, atMs)
            }
          }
        }
        for (const event of sequence) {
          if (event === "restart") actor.restart()
          else if (event === "store fails") storeFails = !storeFails
          else if (event === "delete" || event === "delete and crash") {
            const reply = actor.send(remove, atMs)
            if (event === "delete and crash") actor.restart()
            if (endedAtMs === undefined) {
              expect(reply).toEqual({ _tag: "Done" })
              endedAtMs = atMs
            }
          } else if ("waitMs" in event) atMs += event.waitMs
          else {
            const reply = actor.send(answer(event.step, event.text), atMs)
            const isChange = typeof reply === "object" && reply !== null && "_tag" in reply &&
              (reply._tag === "Answered" || reply._tag === "Rejected")
            if (isChange) changedAtMs = atMs
          }
          settle()
          if (endedAtMs === undefined && atMs >= changedAtMs + retentionMs) endedAtMs = atMs
          const reply = actor.send(describeIt, atMs)
          if (endedAtMs === undefined) {
            expect(reply).toMatchObject({ _tag: "Described" })
            expect(hasEntry).toBe(true)
            expect(actor.timerAtMs).toBe(changedAtMs + retentionMs)
          } else if (atMs < endedAtMs + retentionMs) {
            expect(reply).toMatchObject({ reason: "Gone" })
            expect(actor.timerAtMs).toBe(endedAtMs + retentionMs)
          } else if (actor.state._tag === "Absent") {
            // It is forgotten after its entry is removed.
            expect(hasEntry).toBe(false)
            expect(reply).toMatchObject({ reason: "NotFound" })
            expect(actor.timerAtMs).toBeNull()
          } else {
            expect(reply).toMatchObject({ reason: "Gone" })
            expect(actor.timerAtMs).not.toBeNull()
          }
        }
        storeFails = false
        for (let round = 0; round < 3; round++) {
          atMs += retentionMs + entryRemovalRetryMs
          settle()
        }
        expect(hasEntry).toBe(false)
        expect(actor.state).toEqual(absent)
        expect(actor.timerAtMs).toBeNull()
      }),
      { numRuns: 500 }
    )
  })
})
