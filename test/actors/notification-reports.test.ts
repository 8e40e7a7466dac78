/** When an outgoing notification reports a failure, and what becomes of a report that waits. */
import { describe, expect, it } from "vitest"
import { failureReportGiveUpMs, failureReportLeaseMs, failureReportRetryMaxMs,
  recipientsInlineMax } from "../../actors/limits.ts"
import { nowMs } from "./cells.ts"
import { attempted, begun, created, decide, delivered, faulted, note, one, owner, refused, reloaded,
  report, reported, reporting, retentionMs, retrying, schedule, settled, stateOf, timerFired,
  two } from "./notification-cells.ts"

const text = "A notification was not delivered to https://example.org/…: answered 410."

/** How many of these actions begin a step of a report. */
const steps = ({ actions = [] }: ReturnType<typeof decide>): number =>
  actions.filter(({ _tag }) => _tag === "ReportFailure").length

describe("a notification that fails", () => {
  it("is not reported to an account without a mailbox for that, nor before all nodes know", () => {
    const unwanted = decide(one, attempted(refused), reporting)
    const earlier = decide(one, reported(), { format: 1 })
    for (const decision of [unwanted, earlier]) {
      expect(decision.actions).toEqual([note("failed")])
      expect(decision.timerAtMs).toBe(nowMs + retentionMs)
      expect(stateOf(decision)).not.toHaveProperty("failureReport")
    }
  })

  it("lets an attempt look up what the account wants, once all nodes know reports", () => {
    const attemptsOf = (decision: ReturnType<typeof decide>) =>
      (decision.actions ?? []).flatMap((action) => action._tag === "Attempt" ? [action] : [])
    const first = decide(reloaded(one), timerFired, reporting)
    expect(attemptsOf(first)).toMatchObject([{ mayReport: true }])
    const [earlier] = attemptsOf(decide(reloaded(one), timerFired, { format: 1 }))
    expect(earlier).not.toHaveProperty("mayReport")
    // There is a report already; a Retry may have the next failure reported while it runs.
    const failed = reloaded(stateOf(decide(two, reported(), reporting)))
    const [next] = attemptsOf(decide(failed, timerFired, reporting))
    expect(next).toMatchObject({ recipient: 1, mayReport: true })
  })

  it("is reported when the schedule ends, and not before", () => {
    const failing = (attempt: number) => ({ ...reported(0, attempt), outcome: faulted })
    let state = one
    for (let attempt = 1; attempt < schedule.length; attempt++) {
      const decision = decide(state, failing(attempt), reporting)
      expect(steps(decision)).toBe(0)
      state = stateOf(decision)
    }
    const last = decide(state, failing(schedule.length), reporting)
    expect(last.actions).toContainEqual({
      ...report,
      description: "A notification was not delivered to https://example.org/…: answered 503."
    })
  })

  it("is named in its report, with how many recipients have failed", () => {
    const three = { ...created(3), about: "The keys" }
    const [first, second, third] = three.recipients
    if (first === undefined || second === undefined || third === undefined) throw new Error("three")
    const failing = {
      ...three,
      recipients: [{ ...first, status: "failed" as const }, second, third]
    }
    const { description } = stateOf(decide(failing, reported(2), reporting)).failureReport ?? {}
    expect(description).toBe(
      "“The keys” was not delivered to https://example.org/…: answered 410. " +
        "So far 2 of 3 recipients have failed; its page shows all."
    )
  })

  it("is reported once for all recipients, and once more if a retry fails", () => {
    const waiting = stateOf(decide(two, reported(), reporting))
    const both = decide(waiting, reported(1), reporting)
    expect(both.actions).toEqual([note("failed")])
    expect([both.timerAtMs, both.deferUntilMs]).toEqual([nowMs, nowMs + failureReportLeaseMs])
    // A report that waits is not lost by a retry, and prevents another one.
    const retried = stateOf(decide(stateOf(both), retrying(owner), reporting))
    expect(retried.failureReport).toEqual(waiting.failureReport)
    expect(steps(decide(retried, reported(0, 2), reporting))).toBe(0)
    const done = stateOf(decide(stateOf(both), settled, reporting))
    const again = stateOf(decide(done, retrying(owner), reporting))
    expect(again).not.toHaveProperty("failureReport")
    const later = { ...reporting, nowMs: nowMs + 9 }
    expect(decide(again, reported(0, 2), later).actions)
      .toContainEqual(expect.objectContaining({ _tag: "ReportFailure", atMs: nowMs + 9 }))
  })

  it("stores its report with the recipients that are log items", () => {
    const count = recipientsInlineMax + 1
    let state = created(count)
    for (let at = 0; at < count - 1; at++) {
      const context = { ...reporting, head: count + 1 + at }
      state = stateOf(decide(state, attempted(delivered, at), context))
    }
    const head = 2 * count
    const ending = decide(state, reported(count - 1), { ...reporting, head })
    expect([ending.durable, ending.timerAtMs]).toEqual([true, nowMs])
    expect(ending.items).toHaveLength(1)
    expect(steps(ending)).toBe(1)
    // Both what was appended and the step under way are in memory.
    expect(stateOf(ending).items?.[count - 1]).toBe(head + 1)
    expect(stateOf(ending).failureReportUntilMs).toBe(nowMs + failureReportLeaseMs)
    const first = decide(created(count), reported(), { ...reporting, head: count + 1 })
    expect(first.durable).toBe(true)
    expect(stateOf(first).items?.[0]).toBe(count + 2)
    expect(steps(first)).toBe(1)
  })

  it("repeats a lost step, later each time, and gives up after a day", () => {
    // The other recipient waits for longer than that.
    const waitsUntilMs = nowMs + 2 * failureReportGiveUpMs
    const [failing, other] = two.recipients
    if (failing === undefined || other === undefined) throw new Error("there are two recipients")
    const both = [failing, { ...other, nextAtMs: waitsUntilMs }]
    const open = { ...reloaded(two), recipients: both, running: [] }
    const { failureReportUntilMs: _, ...crashed } = reloaded(
      stateOf(decide(open, reported(), reporting))
    )
    const description = `${text} So far 1 of 2 recipients has failed; its page shows all.`
    // After a crash the timer fires at once.
    const repeated = decide(crashed, timerFired, reporting)
    expect(repeated.actions).toEqual([{ ...report, description }])
    expect(repeated.durable).toBe(false)
    expect([repeated.timerAtMs, repeated.deferUntilMs])
      .toEqual([undefined, nowMs + failureReportLeaseMs])
    let state = stateOf(repeated)
    let atMs = nowMs
    const pausesMs: Array<number> = []
    while (atMs < nowMs + failureReportGiveUpMs) {
      const untilMs = state.failureReportUntilMs ?? atMs
      // While a step is under way, none begins.
      expect(steps(decide(state, timerFired, { ...reporting, nowMs: untilMs - 1 }))).toBe(0)
      const next = decide(state, timerFired, { ...reporting, nowMs: untilMs })
      expect(steps(next)).toBe(1)
      pausesMs.push(untilMs - atMs)
      atMs = untilMs
      state = stateOf(next)
      const isOverdue = atMs >= nowMs + failureReportGiveUpMs
      expect(next.actions).toEqual([{ ...report, description, isOverdue }])
    }
    expect(pausesMs.slice(0, 4).map((pauseMs) => pauseMs / failureReportLeaseMs))
      .toEqual([1, 1, 2, 4])
    expect(Math.max(...pausesMs)).toBe(failureReportRetryMaxMs)
    expect(pausesMs.length).toBeLessThan(40)
    expect(begun(decide(state, settled, reporting))).toEqual([])
    // Also after the end.
    const { failureReportUntilMs: __, ...over } = stateOf(decide(one, reported(), reporting))
    const last = decide(over, timerFired, reporting)
    expect(last.actions).toEqual([report])
    expect([last.timerAtMs, last.deferUntilMs]).toEqual([undefined, nowMs + failureReportLeaseMs])
  })

  it("is kept beyond its retention until its report is settled", () => {
    const late = { ...reporting, nowMs: nowMs + retentionMs }
    const kept = decide(stateOf(decide(one, reported(), reporting)), timerFired, late)
    expect(steps(kept)).toBe(1)
    expect(kept.deferUntilMs).toBe(stateOf(kept).failureReportUntilMs)
    expect(kept.deferUntilMs).toBeGreaterThan(late.nowMs)
    const done = decide(stateOf(kept), settled, late)
    expect([done.timerAtMs, done.deferUntilMs]).toEqual([late.nowMs, undefined])
    expect(decide(stateOf(done), timerFired, late).nextState).toMatchObject({ _tag: "Removed" })
  })
})
