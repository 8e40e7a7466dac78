import { describe, expect } from "vitest"
import type { RegistrationState } from "../../actors/registration/protocol.ts"
import { effectsOf, expectRefused, testCells } from "./cells.ts"
import { absent, addressed, away, callback, create, decide, delivered, describeIt, detach, detached,
  expectBegun, expectNothing, found, hubCreate, pause, pushed, readSecrets, remove, removed,
  revoked, rotate, settled, skipped, table, tested, testIt, timerFired, unsubscribe, update,
  verified, verify, verifying } from "./registration-cells.ts"

/** What a registration that is not there makes of each message. */
const none = (state: RegistrationState, reason: string) => ({
  Create: () => {
    const decision = decide(state, create)
    // A version never returns, so that no late change applies to another registration.
    const version = state._tag === "Removed" ? 2 : 1
    expect(decision.nextState).toEqual({ ...verifying, version })
    expectBegun(decision, verify)
    expect(decision.answer).toMatchObject({
      _tag: "Created",
      repeated: false,
      view: { status: "unverified", cursor: 3, attempts: 0, callback }
    })
    const { secret: _, ...bare } = create
    expectRefused(decide(state, bare), "Invalid")
    const hub = decide(state, hubCreate)
    expect(hub.nextState).toMatchObject({ secrets: [], intent: { secret: "hub2" } })
  },
  Unsubscribe: () => expectRefused(decide(state, unsubscribe), reason),
  Describe: () => expectRefused(decide(state, describeIt), reason),
  ReadSecrets: () => expectRefused(decide(state, readSecrets), reason),
  Update: () => expectRefused(decide(state, update), reason),
  Pause: () => expectRefused(decide(state, pause), reason),
  Rotate: () => expectRefused(decide(state, rotate), reason),
  Test: () => expectRefused(decide(state, testIt), reason),
  Delete: () => expectRefused(decide(state, remove), reason),
  Verified: () => expectNothing(decide(state, verified(delivered))),
  Checked: () => expectNothing(decide(state, found(8))),
  Pushed: () => expectNothing(decide(state, pushed(delivered))),
  Tested: () => expectNothing(decide(state, tested)),
  FailureReportAddressed: () => expectNothing(decide(state, addressed)),
  FailureReportSettled: () => expectNothing(decide(state, settled)),
  Skipped: () => expectNothing(decide(state, skipped)),
  Detached: () => expect(effectsOf(decide(state, detached))).toEqual({ timerAtMs: null }),
  Revoked: () => expectNothing(decide(state, revoked)),
  Unavailable: () => expectNothing(decide(state, away)),
  TimerFired: () => expectBegun(decide(state, timerFired), detach)
})
const whenAbsent = none(absent, "NotFound")
const whenRemoved = none(removed, "Gone")

describe("a registration that is not there", () => {
  testCells({ Absent: table.Absent, Removed: table.Removed }, {
    "Absent.Create": whenAbsent.Create,
    "Absent.Unsubscribe": whenAbsent.Unsubscribe,
    "Absent.Describe": whenAbsent.Describe,
    "Absent.ReadSecrets": whenAbsent.ReadSecrets,
    "Absent.Update": whenAbsent.Update,
    "Absent.Pause": whenAbsent.Pause,
    "Absent.Rotate": whenAbsent.Rotate,
    "Absent.Test": whenAbsent.Test,
    "Absent.Delete": whenAbsent.Delete,
    "Absent.Verified": whenAbsent.Verified,
    "Absent.Checked": whenAbsent.Checked,
    "Absent.Pushed": whenAbsent.Pushed,
    "Absent.Tested": whenAbsent.Tested,
    "Absent.FailureReportAddressed": whenAbsent.FailureReportAddressed,
    "Absent.FailureReportSettled": whenAbsent.FailureReportSettled,
    "Absent.Skipped": whenAbsent.Skipped,
    "Absent.Detached": whenAbsent.Detached,
    "Absent.Revoked": whenAbsent.Revoked,
    "Absent.Unavailable": whenAbsent.Unavailable,
    "Absent.TimerFired": whenAbsent.TimerFired,

    "Removed.Create": whenRemoved.Create,
    "Removed.Unsubscribe": whenRemoved.Unsubscribe,
    "Removed.Describe": whenRemoved.Describe,
    "Removed.ReadSecrets": whenRemoved.ReadSecrets,
    "Removed.Update": whenRemoved.Update,
    "Removed.Pause": whenRemoved.Pause,
    "Removed.Rotate": whenRemoved.Rotate,
    "Removed.Test": whenRemoved.Test,
    "Removed.Delete": whenRemoved.Delete,
    "Removed.Verified": whenRemoved.Verified,
    "Removed.Checked": whenRemoved.Checked,
    "Removed.Pushed": whenRemoved.Pushed,
    "Removed.Tested": whenRemoved.Tested,
    "Removed.FailureReportAddressed": whenRemoved.FailureReportAddressed,
    "Removed.FailureReportSettled": whenRemoved.FailureReportSettled,
    "Removed.Skipped": whenRemoved.Skipped,
    "Removed.Detached": whenRemoved.Detached,
    "Removed.Revoked": whenRemoved.Revoked,
    "Removed.Unavailable": whenRemoved.Unavailable,
    "Removed.TimerFired": whenRemoved.TimerFired
  })
})
