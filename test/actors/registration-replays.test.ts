/** A replay with an end: the range is pushed again, and then pushes go on where they were. */
import { describe, expect, it } from "vitest"
import { active, decide, type Decided, delivered, found, leaseEndMs, look, pushed, type Registered,
  skipped, update } from "./registration-cells.ts"

/** All up to item 9 was pushed. */
const before: Registered = { ...active, cursor: 9 }

const checking = (state: Registered): Registered => ({
  ...state,
  running: { kind: "check", untilMs: leaseEndMs }
})

/** Items 4 to 6 are pushed again. */
const replaying: Registered = { ...before, cursor: 3, replay: { end: 6, resume: 9 } }

/** The state after a decision; its replay is `null` if it has none. */
const after = ({ nextState }: Decided) =>
  nextState?._tag === "Registered"
    ? { cursor: nextState.cursor, replay: nextState.replay ?? null, kind: nextState.running?.kind }
    : undefined

const registeredOf = ({ nextState }: Decided): Registered => {
  if (nextState?._tag !== "Registered") throw new Error("the registration has ended")
  return nextState
}

describe("a replay", () => {
  it.each([
    ["a range of what was pushed", before, 3, 6, 3, { end: 6, resume: 9 }],
    ["a range while another one runs", replaying, 1, 5, 1, { end: 5, resume: 9 }],
    ["an end after all that was pushed", before, 3, 9, 3, null],
    ["no end", replaying, 3, undefined, 3, null],
    ["nothing between both", before, 6, 6, 9, null],
    ["a later beginning than the last push", before, 12, 15, 12, null],
    ["no new position", replaying, undefined, undefined, 3, { end: 6, resume: 9 }]
  ])("begins with %s", (_, state, cursor, replayEnd, next, replay) => {
    const message = {
      ...update,
      ...cursor === undefined ? {} : { cursor },
      ...replayEnd === undefined ? {} : { replayEnd }
    }
    const decision = decide(state, message)
    expect(after(decision)).toEqual({ cursor: next, replay, kind: "check" })
    const end = replay === null ? {} : { end: replay.end }
    expect(decision.actions).toEqual([{ ...look, from: next, ...end }])
  })

  it("goes on after its end where pushes were before, and looks for what came meanwhile", () => {
    const resumed = { cursor: 9, replay: null, kind: "check" }
    const pushing: Registered = {
      ...replaying,
      pushing: 6,
      running: { kind: "push", untilMs: leaseEndMs }
    }
    expect(after(decide(pushing, pushed(delivered, 6)))).toEqual(resumed)
    expect(after(decide(pushing, { ...skipped, upTo: 6 }))).toEqual(resumed)
    expect(decide(pushing, pushed(delivered, 6)).actions).toEqual([{ ...look, from: 9 }])
  })

  it("goes on before its end, also if the last items of the range were removed", () => {
    const pushing: Registered = {
      ...replaying,
      pushing: 5,
      running: { kind: "push", untilMs: leaseEndMs }
    }
    const next = decide(pushing, pushed(delivered, 5))
    expect(after(next)).toEqual({ cursor: 5, replay: replaying.replay, kind: "check" })
    expect(next.actions).toEqual([{ ...look, from: 5, end: 6 }])
    const none = decide(checking({ ...replaying, cursor: 3 }), found(3))
    expect(after(none)).toEqual({ cursor: 9, replay: null, kind: "check" })
    expect(none.actions).toEqual([{ ...look, from: 9 }])
  })

  it("is not ended by a check that has read no changes", () => {
    // The callback has failed, and the secret that allowed the subscription is checked meanwhile.
    const failing: Registered = {
      ...replaying,
      secretsVersion: 1,
      pushing: 6,
      tries: 1,
      nextAtMs: leaseEndMs
    }
    const signaled = decide(failing, { _tag: "TimerFired" })
    expect(signaled.actions).toEqual([
      { ...look, from: 3, end: 6, readsChanges: false, secretsVersion: 1 }
    ])
    const waiting = registeredOf(signaled)
    expect(registeredOf(decide(waiting, found(3))))
      .toMatchObject({ cursor: 3, pushing: 6, replay: replaying.replay })
    // A check of a paused registration is under way when it is resumed.
    const resumed: Registered = {
      ...replaying,
      running: { kind: "existence", untilMs: leaseEndMs },
      checkAgain: true
    }
    const next = decide(resumed, found(3))
    expect(after(next)).toEqual({ cursor: 3, replay: replaying.replay, kind: "check" })
    expect(next.actions).toEqual([{ ...look, from: 3, end: 6 }])
  })
})
