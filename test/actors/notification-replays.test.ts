/** What a notification decides when its sender sends it again to some of its recipients. */
import { describe, expect, it } from "vitest"
import { replaysPerHourMax } from "../../actors/limits.ts"
import type { Queued } from "../../actors/notification/attempts.ts"
import type { NotificationMessage } from "../../actors/notification/protocol.ts"
import { effectsOf, expectOnlyReply, expectRefused, nowMs } from "./cells.ts"
import { attempted, begun, decide, delivered, faulted, following, note, notes, other, owner,
  refused, reloaded, stateOf, timerFired, two } from "./notification-cells.ts"

const hourMs = 60 * 60_000

const replaying = (
  recipients: ReadonlyArray<number>,
  requestId?: string,
  caller = owner
): NotificationMessage => ({
  _tag: "Retry",
  caller,
  recipients,
  ...requestId === undefined ? {} : { requestId }
})

const retried = (recipients: number, isRepeated = false) => ({
  _tag: "Retried",
  recipients,
  isRepeated
})

/** The first recipient has it, and the second one has failed. */
const ended = stateOf(decide(stateOf(decide(two, attempted(delivered))), attempted(refused, 1)))

describe("a replay", () => {
  it("sends it again to a recipient that has it, and to no other", () => {
    const decision = decide(ended, replaying([0]))
    expect(decision.answer).toEqual(retried(1))
    expect(begun(decision)).toEqual([0])
    const [first, second] = stateOf(decision).recipients
    expect(first).toMatchObject({ status: "retry", attempts: 1, tries: 0, nextAtMs: nowMs })
    expect(second).toBe(ended.recipients[1])
    expect(decision.actions).toMatchObject([{ attempt: 2, followUp: undefined }, note("waiting")])
    expect([decision.durable, decision.timerAtMs]).toEqual([true, nowMs])
    const again = stateOf(decide(stateOf(decision), attempted(delivered, 0, 2)))
    expect(again.recipients[0]).toMatchObject({ status: "success", attempts: 2, tries: 1 })
    expect(again.endedAtMs).toBe(nowMs)
  })

  it("that fails leaves a withdrawal the name of what the recipient has", () => {
    const again = stateOf(decide(ended, replaying([0])))
    const failing = stateOf(decide(again, attempted(faulted, 0, 2)))
    const withdrawn = stateOf(decide(failing, following(owner)))
    const dueMs = withdrawn.recipients[0]?.nextAtMs ?? 0
    const followUp = { isWithdrawal: true, isKnown: true, location: "https://example.org/9" }
    expect(decide(reloaded(withdrawn), timerFired, { head: 2, nowMs: dueMs }).actions)
      .toMatchObject([{ recipient: 0, attempt: 3, followUp }, note("waiting")])
  })

  it("tries one that is retried at once, and leaves its place in the schedule", () => {
    const waiting = stateOf(decide(two, attempted(faulted)))
    const decision = decide(waiting, replaying([0, 1]))
    // The second one has an attempt that runs.
    expect(decision.answer).toEqual(retried(1))
    expect(begun(decision)).toEqual([0])
    expect(stateOf(decision).recipients[0]).toMatchObject({ tries: 1, nextAtMs: nowMs })
    const now = retried(0)
    expectOnlyReply(decide(stateOf(decision), replaying([0])), now)
  })

  it("of a span names recipients by their URIs, also those that it does not have", () => {
    const naming = (...to: ReadonlyArray<string>): NotificationMessage => ({
      _tag: "Retry",
      caller: owner,
      to
    })
    const [first] = ended.recipients
    const decision = decide(ended, naming(`${first?.to}#fragment`, "https://elsewhere.test/"))
    expect([decision.answer, begun(decision)]).toEqual([retried(1), [0]])
    expect(stateOf(decision).replaysMs).toEqual([nowMs])
    // It is no replay of this notification, and does not count.
    expectOnlyReply(decide(ended, naming("https://elsewhere.test/")), retried(0))
  })

  it("is made once for a request with a key", () => {
    const request = replaying([0, 1], "key")
    const next = stateOf(decide(ended, request))
    expectOnlyReply(decide(next, request), retried(0, true))
    const gone = stateOf(decide(next, attempted(delivered, 0, 2)))
    expectOnlyReply(decide(gone, request), retried(0, true))
  })

  it("is refused for others, for no recipient, and for one that is none", () => {
    expectRefused(decide(ended, replaying([0], undefined, other)), "Forbidden")
    for (const recipients of [[], [2], [0, 7]]) {
      expectRefused(decide(ended, replaying(recipients)), "Invalid")
    }
  })

  it("is refused where a later edition has arrived, but not where it has failed", () => {
    const second = "<notification><item>2</item></notification>"
    const followed: Queued = stateOf(decide(ended, following(owner, second)))
    const both = stateOf(decide(
      followed,
      { ...attempted(delivered, 0, 2), edition: 1 },
      { head: 2 }
    ))
    expect(both.recipients.map(({ status }) => status)).toEqual(["success", "failed"])
    expectRefused(decide(both, replaying([0])), "Ended")
    const failed = decide(both, replaying([1]), { head: 2 })
    expect(failed.actions).toMatchObject([{ recipient: 1, followUp: { edition: 1 } }, {}])
  })

  it("is one of a bounded number in an hour", () => {
    let state = ended
    for (let n = 0; n < replaysPerHourMax; n++) {
      const atMs = nowMs + n
      const next = stateOf(decide(state, replaying([0]), { nowMs: atMs }))
      const { attempts = 0 } = next.recipients[0] ?? {}
      state = stateOf(decide(next, attempted(delivered, 0, attempts + 1), { nowMs: atMs }))
    }
    expect(state.replaysMs).toHaveLength(replaysPerHourMax)
    const tooMany = { _tag: "TooManyReplays", untilMs: nowMs + hourMs }
    expectOnlyReply(decide(state, replaying([0]), { nowMs: nowMs + hourMs - 1 }), tooMany)
    const later = decide(state, replaying([0]), { nowMs: nowMs + hourMs })
    expect(later.answer).toEqual(retried(1))
    expect(stateOf(later).replaysMs).toHaveLength(replaysPerHourMax)
    // A retry of what has failed is none of them, and a clock that was set back counts.
    expect(decide(state, { _tag: "Retry", caller: owner }).answer).toEqual(retried(1))
    expect(decide(state, replaying([0]), { nowMs: nowMs - hourMs }).answer).toEqual(retried(1))
  })

  it("writes the hint of the listing again with each timer, which may be lost", () => {
    const next = stateOf(decide(ended, replaying([0])))
    const due = decide(reloaded(next), timerFired)
    expect([begun(due), notes(due)]).toEqual([[0], [note("waiting")]])
    expect(notes(decide(reloaded(two), timerFired))).toEqual([])
    expect(effectsOf(decide(ended, replaying([2])))).toBeUndefined()
  })
})
