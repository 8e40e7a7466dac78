import { describe, expect, it } from "vitest"
import { attemptLeaseMs, attemptsAtOnceMax, cachedDocumentCharsMax, deferredInMemoryMs,
  deferredMinMs, locationCharsMax, outdatedItemsMin, problemCharsMax, recipientsInlineMax,
  recipientsMax, removalsMax } from "../../actors/limits.ts"
import { type Queued, withRecipients } from "../../actors/notification/attempts.ts"
import type { NotificationState, RecipientState } from "../../actors/notification/protocol.ts"
import { nowMs } from "./cells.ts"
import { absent, type Attempted, attempted, begun, create, created, decide, deferred, deleting,
  delivered, faulted, note, notes, one, owner, refused, reloaded, stateOf, timerFired, two, uri,
  where } from "./notification-cells.ts"

describe("what an attempt comes to", () => {
  const after = (outcome: Attempted["outcome"]): RecipientState | undefined =>
    stateOf(decide(two, attempted(outcome))).recipients[0]

  const faultedFor = (retryAfterMs: number): Attempted["outcome"] => ({
    _tag: "RetryableFailure",
    problem: "answered 503",
    retryAfterMs
  })

  it("a refusal ends it, with its problem", () => {
    expect(after(refused)).toEqual({
      to: uri(0),
      status: "failed",
      attempts: 1,
      tries: 1,
      lastAtMs: nowMs,
      code: 410,
      problem: "answered 410"
    })
    expect(notes(decide(one, attempted(refused)))).toEqual([note("failed")])
  })

  it("a fault is tried again by the schedule, until that is exhausted", () => {
    const decision = decide(one, attempted(faulted))
    const retry = { status: "retry", attempts: 1, tries: 1, nextAtMs: nowMs + 5_000, code: 503 }
    expect(stateOf(decision).recipients).toMatchObject([retry])
    expect(decision.timerAtMs).toBe(nowMs + 5_000)
    expect(decision.deferUntilMs).toBeUndefined()
    expect(notes(decision)).toEqual([])
    const last = where(one, { status: "retry", attempts: 2, tries: 2 })
    expect(stateOf(decide(last, attempted(faulted, 0, 3))).recipients).toMatchObject([
      { status: "failed", attempts: 3, tries: 3, problem: "answered 503" }
    ])
  })

  it("a later Retry-After is honored", () => {
    expect(after(faultedFor(70_000))?.nextAtMs).toBe(nowMs + 70_000)
    expect(after(faultedFor(70))?.nextAtMs).toBe(nowMs + 5_000)
  })

  it("a deferred attempt was none, and comes again", () => {
    const decision = decide(one, attempted(deferred))
    const waiting = { status: "waiting", attempts: 0, tries: 0, nextAtMs: nowMs + 190_000 }
    expect(stateOf(decision).recipients).toMatchObject([waiting])
    expect(decision.durable).toBe(true)
    expect(decision.timerAtMs).toBe(nowMs + 190_000)
  })

  it("a short deferral is remembered only, and makes room for other recipients", () => {
    const shortly = (afterMs: number) =>
      decide(one, attempted({ _tag: "Deferred", untilMs: nowMs + afterMs }))
    expect(shortly(0).deferUntilMs).toBe(nowMs + deferredMinMs)
    const decision = shortly(deferredInMemoryMs)
    expect(decision.durable).toBe(false)
    expect(decision.timerAtMs).toBeUndefined()
    expect(decision.deferUntilMs).toBe(nowMs + deferredInMemoryMs)
    const held = stateOf(decision)
    expect(held.recipients).toEqual(one.recipients)
    expect(begun(decide(held, timerFired))).toEqual([])
    expect(begun(decide(held, timerFired, { nowMs: nowMs + deferredInMemoryMs }))).toEqual([0])
    const many = created(attemptsAtOnceMax + 2)
    const others = decide(many, attempted({ _tag: "Deferred", untilMs: nowMs + 1_000 }))
    expect(begun(others)).toEqual([attemptsAtOnceMax])
  })

  it("keeps neither an endless Location nor an endless problem", () => {
    const long = uri(1).padEnd(locationCharsMax + 1, "x")
    expect(after({ _tag: "Delivered", code: 201, location: long })).not.toHaveProperty("location")
    const problem = "x".repeat(problemCharsMax + 1)
    expect(after({ _tag: "PermanentFailure", problem })?.problem).toHaveLength(problemCharsMax)
  })
})

describe("running attempts", () => {
  const many = created(attemptsAtOnceMax + 2)

  it("are not begun again, and are held to be lost after their lease", () => {
    expect(begun(decide(two, timerFired))).toEqual([])
    expect(decide(two, timerFired).deferUntilMs).toBe(nowMs + attemptLeaseMs)
    const lost = decide(two, timerFired, { nowMs: nowMs + attemptLeaseMs })
    expect(begun(lost)).toEqual([0, 1])
  })

  it("are bounded: another one begins when one has ended, the longest due first", () => {
    expect(begun(decide(absent, create(many.recipients.map(({ to }) => to))))).toHaveLength(
      attemptsAtOnceMax
    )
    const next = decide(many, attempted(delivered, 3), { head: 1 })
    expect(begun(next)).toEqual([attemptsAtOnceMax])
    const longest: Queued = {
      ...many,
      recipients: many.recipients.map((recipient, at) =>
        at === attemptsAtOnceMax + 1 ? { ...recipient, nextAtMs: nowMs - 1 } : recipient
      )
    }
    const later = decide(longest, attempted(delivered, 3), { head: 1 })
    expect(begun(later)).toEqual([attemptsAtOnceMax + 1])
    expect(later.timerAtMs).toBeUndefined()
    expect(later.deferUntilMs).toBe(nowMs + attemptLeaseMs)
  })

  it("hold the timer until the next attempt is due", () => {
    const decision = decide(two, attempted(faulted))
    expect(decision.timerAtMs).toBeUndefined()
    expect(decision.deferUntilMs).toBe(nowMs + 5_000)
    const last = decide(stateOf(decision), attempted(faulted, 1))
    expect(last.timerAtMs).toBe(nowMs + 5_000)
  })

  it("are not begun twice when an answer comes after the actor was loaded again", () => {
    const decision = decide(reloaded(two), attempted(faulted))
    expect(begun(decision)).toEqual([])
    expect(decision.deferUntilMs).toBe(nowMs + 5_000)
    expect(stateOf(decision).running).toEqual([
      { recipient: 1, untilMs: nowMs + attemptLeaseMs, mayRepeat: true }
    ])
  })

  it("carry a small document only", () => {
    const inside = "x".repeat(cachedDocumentCharsMax)
    const large = `<notification>${inside}</notification>`
    const decision = decide(absent, { ...create([uri(0)]), document: large })
    expect(decision.actions).toMatchObject([{ document: undefined, chars: large.length }])
  })
})

describe("many recipients", () => {
  const count = recipientsInlineMax + 1
  const to = Array.from({ length: count }, (_, at) => uri(at))
  const creation = decide(absent, create(to))
  const many = stateOf(creation)
  const logOf = (values: ReadonlyArray<string> = [], first = 1) =>
    values.map((value, at) => ({ n: first + at, value }))

  it("are log items of their own, after the document", () => {
    expect(creation.items).toHaveLength(1 + count)
    const { running: _, ...kept } = many
    const bare = { ...kept, recipients: [], items: [] }
    expect(withRecipients(bare, logOf(creation.items))).toEqual(kept)
  })

  it("have one more item after an attempt; the last one counts", () => {
    const decision = decide(many, attempted(faulted, 3), { head: 1 + count })
    expect(decision.durable).toBe(false)
    expect(decision.items).toHaveLength(1)
    const state = stateOf(decision)
    expect(state.items?.[3]).toBe(2 + count)
    const log = [...logOf(creation.items), ...logOf(decision.items, 2 + count)]
    const { running: _, ...kept } = state
    expect(withRecipients({ ...kept, version: 1, recipients: [] }, log)).toEqual(kept)
    expect(() => withRecipients(state, log.slice(0, 5))).toThrow("the log has 4 of 17 recipients")
  })

  it("are cleaned of outdated items, those that count are appended again", () => {
    const head = 1 + 2 * count + outdatedItemsMin
    const decision = decide(many, attempted(faulted, 3), { head })
    expect(decision.durable).toBe(true)
    // The result, and all other recipients, whose items are the first ones.
    expect(decision.items).toHaveLength(count)
    expect(decision.removals).toEqual(Array.from({ length: head - 1 }, (_, at) => at + 2))
    expect(stateOf(decision).cleaned).toBe(head)
    const { running: _, ...kept } = stateOf(decision)
    const log = logOf(decision.items, head + 1)
    expect(withRecipients({ ...kept, recipients: [], items: [] }, log)).toEqual(kept)
  })

  it("are removed with the notification, in steps", () => {
    const decision = decide(many, deleting(owner), { head: 1 + count })
    expect(new Set(decision.removals)).toEqual(
      new Set(Array.from({ length: 1 + count }, (_, at) => at + 1))
    )
    expect(decision.timerAtMs).toBe(null)
    const head = removalsMax + 100
    const first = decide(many, deleting(owner), { head })
    expect(first.removals).toHaveLength(removalsMax)
    expect(first.timerAtMs).toBe(nowMs)
    const next: NotificationState = first.nextState ?? absent
    const rest = decide(next, { _tag: "TimerFired" }, { head })
    expect(rest.removals).toHaveLength(100)
    expect(rest.timerAtMs).toBe(null)
    expect(rest.nextState).toMatchObject({ _tag: "Removed" })
  })

  it("are bounded", () => {
    const tooMany = Array.from({ length: recipientsMax + 1 }, (_, at) => uri(at))
    expect(decide(absent, create(tooMany)).answer).toMatchObject({ reason: "Invalid" })
  })
})
