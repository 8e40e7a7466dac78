/** The attempts that an outgoing notification keeps for its sender. */
import { describe, expect, it } from "vitest"
import { answerSampleBytesMax, attemptCharsMax, cleanedItemsMax, outdatedItemsMin, problemCharsMax,
  recipientAttemptsKeptMax, recipientsInlineMax, relayAttemptsKeptCharsMax, relayAttemptsKeptMax,
  removalsMax } from "../../actors/limits.ts"
import { decodeRelayAttempt, relayAttemptsFormat } from "../../actors/notification/attempt-log.ts"
import { bytesOfQueued, type Queued, withRecipients } from "../../actors/notification/attempts.ts"
import { NotificationMessage, NotificationState } from "../../actors/notification/protocol.ts"
import type { DeliveryOutcome, ExchangeRecord } from "../../actors/outbound/protocol.ts"
import { codecsOf } from "../../actors/schemas.ts"
import { nowMs } from "./cells.ts"
import { type Attempted, attempted, created, decide, type Decided, deferred, deleting, delivered,
  faulted, following, one, owner, refused, reported, stateOf, timerFired, two, uri,
  where } from "./notification-cells.ts"

const exchangeOf = (text: string, code = 503): ExchangeRecord => ({
  beganAtMs: nowMs - 20,
  durationMs: 20,
  requestHeaders: [["idempotency-key", "\"k\""]],
  code,
  answer: { headers: [["content-type", "text/plain"]], bytes: text.length, text }
})

const known = { format: relayAttemptsFormat }

const result = (
  outcome: DeliveryOutcome,
  { attempt = 1, recipient = 0, text = "busy" } = {}
): Attempted => ({ ...attempted(outcome, recipient, attempt), exchange: exchangeOf(text) })

const attemptIn = ({ items }: Decided) => decodeRelayAttempt(items?.[0] ?? "")

describe("a failed attempt", () => {
  it("is appended by the decision on its result, with what follows", () => {
    const decision = decide(two, result(faulted), known)
    const state = stateOf(decision)
    expect(decision.items).toHaveLength(1)
    expect(attemptIn(decision)).toEqual({
      recipient: 0,
      attempt: 1,
      exchange: exchangeOf("busy"),
      problem: "answered 503",
      follows: "schedule",
      nextAtMs: state.recipients[0]?.nextAtMs
    })
    expect(decision.durable).toBe(true)
    expect(state.attemptLog).toEqual([[2, 0, decision.items?.[0]?.length]])
    expect(state.recipients[0]).toMatchObject({ tookMs: 20 })
  })

  it("says if the recipient has asked for the time of the next one", () => {
    const asked = { ...faulted, retryAfterMs: 600_000 } as DeliveryOutcome
    expect(attemptIn(decide(one, result(asked), known))).toMatchObject({
      follows: "retry-after",
      nextAtMs: nowMs + 600_000
    })
  })

  it("says if none follows, and why", () => {
    const permanent = attemptIn(decide(one, result(refused), known))
    expect(permanent).toMatchObject({ follows: "permanent" })
    expect(permanent).not.toHaveProperty("nextAtMs")
    const last = where(one, { status: "retry", attempts: 2, tries: 2 })
    const ended = attemptIn(decide(last, result(faulted, { attempt: 3 }), known))
    expect(ended).toMatchObject({ attempt: 3, follows: "given-up" })
    expect(ended).not.toHaveProperty("nextAtMs")
  })

  it("says if a follow-up is sent next, which was stored meanwhile", () => {
    const followed = stateOf(decide(one, following(owner, "<notification>2</notification>")))
    const context = { ...known, head: 2 }
    expect(attemptIn(decide(followed, result(refused), context))).toMatchObject({
      follows: "follow-up",
      nextAtMs: nowMs
    })
    expect(attemptIn(decide(followed, result(faulted), context)))
      .toMatchObject({ follows: "schedule" })
  })

  it("has the mark of a local delivery", () => {
    const exchange = { beganAtMs: nowMs, requestHeaders: [], code: 507 }
    const message = { ...attempted(faulted), exchange, isLocal: true }
    const decision = decide(one, message, known)
    expect(attemptIn(decision)).toMatchObject({ isLocal: true, exchange })
    expect(stateOf(decision).recipients[0]).not.toHaveProperty("tookMs")
  })

  it("is bounded, whatever the answer and the problem are", () => {
    const problem = "p".repeat(9 * problemCharsMax)
    const outcome: DeliveryOutcome = { _tag: "PermanentFailure", problem }
    const text = "\u0001".repeat(answerSampleBytesMax)
    const decision = decide(one, result(outcome, { text }), known)
    expect(decision.items?.[0]?.length).toBeLessThanOrEqual(attemptCharsMax)
    expect(attemptIn(decision)).toMatchObject({
      problem: problem.slice(0, problemCharsMax),
      exchange: { answer: { text: "", isCut: true } }
    })
  })

  it("is kept with the report of a failure", () => {
    const many = created(recipientsInlineMax + 1)
    const decision = decide(many, { ...reported(), exchange: exchangeOf("no") }, {
      ...known,
      head: many.recipients.length + 1
    })
    expect(decision.items).toHaveLength(2)
    expect(attemptIn(decision)).toMatchObject({ follows: "permanent" })
    expect(stateOf(decision)).toMatchObject({
      failureReport: expect.anything(),
      attemptLog: [[many.recipients.length + 2, 0, expect.any(Number)]]
    })
  })

  it("is not kept if an older node may load the notification, or has made it", () => {
    expect(decide(one, result(faulted)).items).toBeUndefined()
    expect(decide(one, attempted(faulted), known).items).toBeUndefined()
  })

  it("that is late, or was deferred, was none", () => {
    for (const outcome of [deferred, { _tag: "Deferred", untilMs: nowMs + 5 } as const]) {
      expect(decide(one, result(outcome), known).items).toBeUndefined()
    }
    expect(decide(one, result(faulted, { attempt: 2 }), known).items).toBeUndefined()
  })
})

describe("a success", () => {
  it("is appended with both sides and as much of the answer as a failure", () => {
    const text = "x".repeat(answerSampleBytesMax)
    const decision = decide(two, result(delivered, { text }), known)
    expect(attemptIn(decision)).toEqual({
      recipient: 0,
      attempt: 1,
      exchange: exchangeOf(text),
      follows: "done"
    })
    expect(stateOf(decision).attemptLog).toEqual([[2, 0, decision.items?.[0]?.length]])
    expect(stateOf(decision).recipients[0]).toMatchObject({ code: 202, tookMs: 20 })
  })

  it("takes some 4.5 KiB at most of an ordinary exchange, and none of a local delivery", () => {
    const [item = ""] = decide(two, result(delivered, { text: "accepted" }), known).items ?? []
    expect(item.length).toBeLessThan(300)
    const text = "x".repeat(answerSampleBytesMax)
    const [long = ""] = decide(two, result(delivered, { text }), known).items ?? []
    expect(long.length).toBeLessThan(4_608)
    const exchange = { beganAtMs: nowMs, durationMs: 3, requestHeaders: [], code: 202 }
    const local = { ...attempted(delivered), exchange, isLocal: true }
    const repeated = { ...attempted(delivered), exchange }
    for (const message of [local, repeated]) {
      expect(decide(two, message, known).items).toBeUndefined()
      expect(stateOf(decide(two, message, known))).not.toHaveProperty("attemptLog")
    }
  })

  it("says if a follow-up is sent next, which was stored meanwhile", () => {
    const followed = stateOf(decide(one, following(owner, "<notification>2</notification>")))
    expect(attemptIn(decide(followed, result(delivered), { ...known, head: 2 })))
      .toMatchObject({ follows: "follow-up", nextAtMs: nowMs })
  })

  it("appends no more than itself and its result among many recipients", () => {
    const many = created(recipientsInlineMax + 1)
    const decision = decide(many, result(delivered), { ...known, head: 18 })
    expect(decision.items).toHaveLength(2)
    expect(decision.durable).toBe(false)
  })
})

/** A notification and its log, as its decisions have made them. */
class Kept {
  state: Queued
  readonly log = new Map<number, string>()
  head: number

  constructor(recipients: number) {
    this.state = created(recipients)
    this.head = this.state.listed === undefined ? 1 : recipients + 1
    this.log.set(1, "<notification/>")
    for (const at of this.state.listed === undefined ? [] : this.state.recipients.keys()) {
      this.log.set(at + 2, "{}")
    }
  }

  /** The next attempt at this recipient fails, and its time comes again at once. */
  fail(recipient: number, chars = 1): Decided {
    const decision = this.end(recipient, faulted, chars)
    const recipients = this.state.recipients.map((one) =>
      one.status === "success" ? one : { ...one, status: "retry", tries: 0 } as const
    )
    this.state = { ...this.state, recipients }
    return decision
  }

  /** The next attempt at this recipient ends so. */
  end(recipient: number, outcome: DeliveryOutcome, chars = 1): Decided {
    const attempt = (this.state.recipients[recipient]?.attempts ?? 0) + 1
    const message = result(outcome, { attempt, recipient, text: "x".repeat(chars) })
    const decision = decide(this.state, message, { ...known, head: this.head })
    for (const item of decision.items ?? []) this.log.set(++this.head, item)
    for (const n of decision.removals ?? []) this.log.delete(n)
    this.state = stateOf(decision)
    return decision
  }

  attempts() {
    return (this.state.attemptLog ?? []).map(([n]) => decodeRelayAttempt(this.log.get(n) ?? ""))
  }

  chars(): number {
    return (this.state.attemptLog ?? []).reduce((sum, [, , chars]) => sum + chars, 0)
  }
}

describe("the attempts of a notification", () => {
  it("are the last ones of each recipient, and the log has no others", () => {
    const kept = new Kept(2)
    kept.fail(1)
    for (let n = 0; n < recipientAttemptsKeptMax + 3; n++) kept.fail(0)
    const attempts = kept.attempts()
    expect(attempts[0]).toMatchObject({ recipient: 1, attempt: 1 })
    expect(attempts.slice(1).map((attempt) => attempt?.attempt))
      .toEqual(Array.from({ length: recipientAttemptsKeptMax }, (_, at) => at + 4))
    expect(kept.log.size).toBe(1 + attempts.length)
  })

  it("are fewer if they are long, and the oldest ones make room", () => {
    const kept = new Kept(recipientsInlineMax)
    for (let round = 0; round < 8; round++) {
      for (const at of kept.state.recipients.keys()) kept.fail(at, answerSampleBytesMax)
    }
    expect(kept.chars()).toBeLessThanOrEqual(relayAttemptsKeptCharsMax)
    expect(kept.chars()).toBeGreaterThan(relayAttemptsKeptCharsMax - attemptCharsMax)
    const attempts = kept.attempts()
    const last = { attempt: 8, recipient: recipientsInlineMax - 1 }
    expect(attempts.at(-1)).toMatchObject(last)
    expect(Math.min(...attempts.map((attempt) => attempt?.attempt ?? 0))).toBeGreaterThan(1)
    expect(kept.log.size).toBe(1 + attempts.length)
  })

  it("are successes only where there is room, which failures get before", () => {
    const count = relayAttemptsKeptMax + 40
    const kept = new Kept(count)
    const failed = 10
    for (let at = 0; at < failed; at++) kept.fail(at)
    for (let at = failed; at < count - failed; at++) kept.end(at, delivered)
    // The last successes found no room, and have displaced nothing.
    const recipients = kept.attempts().map((attempt) => attempt?.recipient)
    expect(recipients).toEqual(Array.from({ length: relayAttemptsKeptMax }, (_, at) => at))
    for (let at = count - failed; at < count; at++) kept.fail(at)
    const failures = kept.attempts().filter((attempt) => attempt?.problem !== undefined)
    expect(failures).toHaveLength(2 * failed)
    expect(kept.state.attemptLog).toHaveLength(relayAttemptsKeptMax)
    expect(kept.chars()).toBeLessThanOrEqual(relayAttemptsKeptCharsMax)
  })

  it("are the last successes of a recipient that gets it again and again", () => {
    const kept = new Kept(1)
    for (let n = 0; n < recipientAttemptsKeptMax + 3; n++) {
      kept.end(0, delivered)
      kept.state = where(kept.state, { status: "retry", tries: 0 })
    }
    expect(kept.attempts().map((attempt) => attempt?.attempt))
      .toEqual(Array.from({ length: recipientAttemptsKeptMax }, (_, at) => at + 4))
    expect(kept.log.size).toBe(1 + recipientAttemptsKeptMax)
  })

  it("are bounded in number, and survive the cleaning of a long log", () => {
    const count = relayAttemptsKeptMax / 2
    const kept = new Kept(count)
    for (let round = 0; round < 5; round++) {
      for (let at = 0; at < count; at++) {
        const { removals = [] } = kept.fail(at)
        expect(removals.length).toBeLessThanOrEqual(removalsMax)
      }
    }
    expect(kept.state.cleaned).toBeGreaterThan(cleanedItemsMax)
    expect(kept.state.attemptLog).toHaveLength(relayAttemptsKeptMax)
    expect(kept.attempts().map((attempt) => attempt?.attempt)).toEqual([
      ...Array.from({ length: count }, () => 4),
      ...Array.from({ length: count }, () => 5)
    ])
    expect(kept.log.size).toBeLessThan(3 * count + outdatedItemsMin + relayAttemptsKeptMax)
    expect(bytesOfQueued(kept.state)).toBeGreaterThan(bytesOfQueued(created(count)))
  })

  it("are restored from the log, together with those that only the record lists", () => {
    const kept = new Kept(recipientsInlineMax + 1)
    for (let round = 0; round < 20; round++) {
      for (const at of kept.state.recipients.keys()) kept.fail(at)
    }
    const { attemptLog = [], cleaned } = kept.state
    expect(attemptLog.some(([n]) => n <= cleaned)).toBe(true)
    const log = [...kept.log].map(([n, value]) => ({ n, value }))
    const stored = { ...kept.state, recipients: [] }
    expect(withRecipients(stored, log)).toMatchObject({ attemptLog })
  })

  it("are described on demand by the numbers of their items", () => {
    const kept = new Kept(2)
    kept.fail(0)
    kept.fail(1)
    const describing: NotificationMessage = { _tag: "Describe", caller: owner }
    const viewOf = (message: NotificationMessage) => decide(kept.state, message).answer
    expect(viewOf({ ...describing, attempts: true })).toMatchObject({
      view: { attemptItems: [2, 3] }
    })
    expect(viewOf(describing)).not.toHaveProperty("view.attemptItems")
  })

  it.each([2, recipientsInlineMax + 1])("of %i recipients go with it", (recipients) => {
    const kept = new Kept(recipients)
    for (let round = 0; round < 20; round++) {
      for (const at of kept.state.recipients.keys()) kept.fail(at)
    }
    let decision = decide(kept.state, deleting(owner), { head: kept.head })
    for (;;) {
      for (const n of decision.removals ?? []) kept.log.delete(n)
      expect(decision.removals?.length).toBeLessThanOrEqual(removalsMax)
      const { nextState } = decision
      if (nextState?._tag !== "Removed" || nextState.cleaned === undefined) break
      decision = decide(nextState, timerFired, { head: kept.head })
    }
    expect([...kept.log.keys()]).toEqual([])
  })

  it("are none in a state of before, and stay beside fields of a later version", () => {
    const { decode, encode } = codecsOf(NotificationState, NotificationMessage)
    const before = decode(JSON.stringify(two))
    if (before._tag !== "Queued") throw new Error("it is not queued")
    expect(before).not.toHaveProperty("attemptLog")
    const decision = decide({ ...before, recipients: two.recipients }, result(faulted), known)
    expect(decode(encode(stateOf(decision)))).toMatchObject({
      attemptLog: [[2, 0, expect.any(Number)]]
    })
    expect(before.recipients[0]).toMatchObject({ to: uri(0) })
  })

  it("of a newer version that this one cannot read are left out", () => {
    const [item = ""] = decide(one, result(faulted), known).items ?? []
    expect(decodeRelayAttempt(JSON.stringify({ ...JSON.parse(item), follows: "a later word" })))
      .toMatchObject({ follows: "a later word" })
    for (const unknown of ["{", "{}", JSON.stringify({ recipient: 0, attempt: 1 })]) {
      expect(decodeRelayAttempt(unknown)).toBeUndefined()
    }
  })
})
