/** When a registration reports its suspension, and what becomes of a report that waits. */
import { describe, expect, it } from "vitest"
import { failingMaxMs, failureReportIntervalMs, failureReportLeaseMs } from "../../actors/limits.ts"
import { nowMs } from "./cells.ts"
import { active, addressed, asked, decide, delivered, expectBegun, expectNothing, faulted,
  hubCreate, look, pause, pushed, pushing, type Registered, rejected, rejecting, report, reporting,
  settled, suspended, tested, timerFired, update, verified } from "./registration-cells.ts"

type Decision = ReturnType<typeof decide>

const stateOf = ({ nextState }: Decision): Registered => {
  if (nextState?._tag !== "Registered") throw new Error("it is not registered")
  return nextState
}

const reportsOf = ({ actions = [] }: Decision) =>
  actions.filter(({ _tag }) => _tag === "ReportFailure")

/** Suspended, and its report is under way. */
const waiting = stateOf(decide(rejecting, pushed(rejected), reporting))

describe("a registration that is suspended", () => {
  it("reports it, once all nodes know reports, and looks for its mailbox meanwhile", () => {
    const late: Registered = { ...pushing, tries: 1, failingSinceMs: nowMs - failingMaxMs }
    const earlier = decide(late, pushed(faulted), { format: 1 })
    expect([earlier.actions, earlier.timerAtMs]).toEqual([undefined, null])
    expect(earlier.nextState).not.toHaveProperty("failureReport")
    const decision = decide({ ...late, checkAgain: true }, pushed(faulted), reporting)
    const since = new Date(nowMs - failingMaxMs).toISOString()
    expectBegun(
      decision,
      expect.objectContaining({
        _tag: "ReportFailure",
        description: expect.stringContaining(`: no answer in time, since ${since}.`)
      }),
      { ...look, readsChanges: false }
    )
  })

  it("names the origin of its callback only, whose path may be a secret", () => {
    expect(JSON.stringify(waiting.failureReport)).not.toContain("hook")
  })

  it("repeats a lost step, and at once after a crash", () => {
    expect(reportsOf(decide(waiting, timerFired, reporting))).toEqual([])
    const { failureReportUntilMs: _, ...crashed } = waiting
    expect(decide(crashed, timerFired, reporting).actions).toContainEqual(report)
    const later = { ...reporting, nowMs: nowMs + failureReportLeaseMs }
    expect(reportsOf(decide(waiting, timerFired, later))).toEqual([report])
  })

  it("says whose registration it is, so that readers do not use up the share of the owner", () => {
    const decision = decide({ ...rejecting, secretsVersion: 1 }, pushed(rejected), reporting)
    expect(reportsOf(decision)).toEqual([{ ...report, cause: "reader" }])
  })

  it("drops a report that waits when it is active again", () => {
    const hub: Registered = {
      ...waiting,
      form: "websub",
      intent: { ...asked, leaseSeconds: 60 },
      secrets: [{ value: "hub" }]
    }
    const browser: Registered = { ...waiting, p256dh: "key" }
    const again = { ...hubCreate, form: "webpush", p256dh: "key 2", secret: "auth 2" } as const
    for (
      const lifted of [
        decide(waiting, update, reporting),
        decide(hub, verified(delivered), reporting),
        decide(browser, again, reporting)
      ]
    ) {
      const state = stateOf(lifted)
      expect(state.status).toBe("active")
      expect(state).not.toHaveProperty("failureReport")
      expect(state).not.toHaveProperty("failureReportUntilMs")
      expect(reportsOf(lifted)).toEqual([])
      for (const late of [addressed, settled]) expectNothing(decide(state, late, reporting))
    }
    // A pause does not say that anybody has seen it.
    const paused = decide(waiting, pause, reporting)
    expect(stateOf(paused)).toMatchObject({ failureReport: { description: report.description } })
  })

  it("reports once a day, however often it is made active and rejected", () => {
    const done = stateOf(decide(waiting, settled, reporting))
    // Without the check that an update asks for: only a report would set the timer.
    const { checkAgain: _, ...lifted } = stateOf(decide(done, update, reporting))
    const pushed403 = (laterMs: number) =>
      decide({ ...lifted, pushing: 8 }, pushed(rejected), { ...reporting, nowMs: nowMs + laterMs })
    const soon = pushed403(failureReportIntervalMs - 1)
    expect(stateOf(soon)).toMatchObject({ status: "suspended" })
    expect([reportsOf(soon), soon.timerAtMs]).toEqual([[], null])
    const nextDay = pushed403(failureReportIntervalMs)
    expect(reportsOf(nextDay)).toMatchObject([{ atMs: nowMs + failureReportIntervalMs }])
  })

  it("reports a suspension by a test event, but none when it was suspended before", () => {
    const test = { id: "t1", startsMs: [nowMs] }
    const result = { ...tested, outcome: rejected }
    const browser: Registered = { ...active, form: "webpush", test }
    const decision = decide(browser, result, reporting)
    expect(stateOf(decision)).toMatchObject({ status: "suspended" })
    expect(reportsOf(decision)).toEqual([report])
    const before: Registered = { ...suspended, form: "webpush", test }
    expect(reportsOf(decide(before, result, reporting))).toEqual([])
  })
})
