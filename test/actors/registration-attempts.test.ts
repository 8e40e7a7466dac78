/** The attempts that a registration keeps for its readers. */
import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import { answerSampleBytesMax, attemptCharsMax, attemptsKeptCharsMax, attemptsKeptMax,
  failingMaxMs } from "../../actors/limits.ts"
import type { DeliveryOutcome, ExchangeObserver,
  ExchangeRecord } from "../../actors/outbound/protocol.ts"
import { retryAfterMaxMs } from "../../actors/outbound/response.ts"
import { decodeAttempt, observed } from "../../actors/registration/attempts.ts"
import { RegistrationMessage, RegistrationState } from "../../actors/registration/protocol.ts"
import { codecsOf } from "../../actors/schemas.ts"
import { nowMs } from "./cells.ts"
import { active, callback, decide, type Decided, deferred, delivered, describeIt, expectEnd,
  faulted, looking, paused, pushed, pushing, refused, type Registered, remove, tested, verified,
  verifying } from "./registration-cells.ts"

const exchangeOf = (text: string, code = 500): ExchangeRecord => ({
  beganAtMs: nowMs - 20,
  durationMs: 20,
  requestHeaders: [["webhook-id", "msg_1"]],
  code,
  answer: { headers: [["content-type", "text/plain"]], bytes: text.length, text }
})

const exchange = exchangeOf("no such table")

const pushOf = (outcome: DeliveryOutcome, with_ = exchange) => ({
  ...pushed(outcome),
  exchange: with_
})

const attemptIn = ({ items }: Decided) => {
  expect(items).toHaveLength(1)
  const attempt = decodeAttempt(items?.[0] ?? "")
  if (attempt === undefined) throw new Error("it is no attempt")
  return attempt
}

const registeredIn = ({ nextState }: Decided): Registered => {
  if (nextState?._tag !== "Registered") throw new Error("it is not registered")
  return nextState
}

describe("the attempt of a result", () => {
  it("is appended by the decision on it, with what follows", () => {
    const decision = decide(pushing, pushOf(faulted))
    const { attemptLog, nextAtMs } = registeredIn(decision)
    expect(attemptIn(decision)).toEqual({
      kind: "push",
      exchange,
      problem: "no answer in time",
      follows: "schedule",
      nextAtMs
    })
    expect(decision.durable).toBe(true)
    expect(attemptLog).toEqual({ first: 1, chars: [decision.items?.[0]?.length] })
    expect(decide(registeredIn(decision), describeIt).answer).toMatchObject({
      view: { attemptLog: { first: 1, count: 1 } }
    })
  })

  it("says if the receiver has asked for the time of the next one", () => {
    const asked = { ...faulted, code: 503, retryAfterMs: 600_000 } as DeliveryOutcome
    expect(attemptIn(decide(pushing, pushOf(asked)))).toMatchObject({
      follows: "retry-after",
      nextAtMs: nowMs + 600_000
    })
  })

  it("says so also of a time that is later than the service waits", () => {
    const asked = { ...faulted, code: 503, retryAfterMs: 2 * retryAfterMaxMs } as DeliveryOutcome
    expect(attemptIn(decide(pushing, pushOf(asked)))).toMatchObject({
      follows: "retry-after",
      nextAtMs: nowMs + retryAfterMaxMs
    })
  })

  it("is read as far as this version knows it", () => {
    const [item = ""] = decide(pushing, pushOf(faulted)).items ?? []
    const other = { ...JSON.parse(item), kind: "probe", follows: "another-kind", more: 1 }
    expect(decodeAttempt(JSON.stringify(other))).toMatchObject({
      kind: "probe",
      follows: "another-kind"
    })
    for (const unknown of ["", "{}", JSON.stringify({ ...other, exchange: "elsewhere" })]) {
      expect(decodeAttempt(unknown)).toBeUndefined()
    }
  })

  it("has what a test has exchanged, which is not repeated", () => {
    const begun = { ...active, test: { id: "t1", startsMs: [nowMs] } }
    const failed = decide(begun, { ...tested, outcome: refused, exchange })
    expect(attemptIn(failed)).toEqual({
      kind: "test",
      exchange,
      problem: "not found",
      follows: "none"
    })
    expect(attemptIn(decide(begun, { ...tested, exchange }))).toMatchObject({ follows: "done" })
    const browser = { ...begun, form: "webpush" as const, p256dh: "key" }
    const unwanted: DeliveryOutcome = { _tag: "PermanentFailure", code: 403, problem: "no" }
    expect(attemptIn(decide(browser, { ...tested, outcome: unwanted, exchange })))
      .toMatchObject({ kind: "test", follows: "suspended" })
    // Nothing was sent, or it was another test.
    for (const other of [{ outcome: refused }, { outcome: deferred, exchange }, { id: "t0" }]) {
      expect(decide(begun, { ...tested, ...other }).items ?? []).toEqual([])
    }
  })

  it("says if none follows", () => {
    const long = { ...pushing, failingSinceMs: nowMs - failingMaxMs }
    expect(attemptIn(decide(long, pushOf(faulted)))).toMatchObject({ follows: "suspended" })
    const answered = { ...verified(refused), exchange } as RegistrationMessage
    const attempt = attemptIn(decide(verifying, answered))
    expect(attempt).toMatchObject({ kind: "verification", follows: "given-up" })
    expect(attempt).not.toHaveProperty("nextAtMs")
  })

  it("has as much of the answer if it has succeeded", () => {
    const long = exchangeOf("x".repeat(answerSampleBytesMax), 200)
    const attempt = attemptIn(decide(pushing, pushOf(delivered, long)))
    expect(attempt).toMatchObject({ kind: "push", follows: "done" })
    expect(attempt).not.toHaveProperty("problem")
    expect(attempt.exchange).toEqual(long)
    const echoed = { ...verified(delivered), exchange } as RegistrationMessage
    expect(attemptIn(decide(verifying, echoed))).toMatchObject({ kind: "verification" })
  })

  it("is bounded, whatever the answer is", () => {
    const decision = decide(
      pushing,
      pushOf(faulted, exchangeOf("\u0001".repeat(answerSampleBytesMax)))
    )
    expect(decision.items?.[0]?.length).toBeLessThanOrEqual(attemptCharsMax)
    expect(attemptIn(decision).exchange.answer).toMatchObject({ text: "", isCut: true })
  })

  it("is not kept if it was not made, counts no more, or is of an older node", () => {
    for (
      const decision of [
        decide(pushing, pushOf(deferred)),
        decide(active, pushOf(faulted)),
        decide({ ...looking, status: "paused" }, pushOf(faulted)),
        decide(paused, pushOf(faulted)),
        decide(pushing, pushed(faulted))
      ]
    ) expect(decision.items).toBeUndefined()
  })
})

describe("the attempts of a registration", () => {
  /** After so many failed pushes with answers of so many characters. */
  const after = (count: number, chars: number) => {
    let state: Registered = pushing
    const kept = new Map<number, string>()
    for (let n = 1; n <= count; n++) {
      const decision = decide(
        { ...state, pushing: 8, running: pushing.running ?? { kind: "push", untilMs: nowMs } },
        pushOf(faulted, exchangeOf(`${n} `.padEnd(chars, "x"))),
        { head: n - 1 }
      )
      kept.set(n, decision.items?.[0] ?? "")
      for (const removed of decision.removals ?? []) expect(kept.delete(removed)).toBe(true)
      state = registeredIn(decision)
    }
    return { state, kept }
  }

  it("are the last ones, and the log has no others", () => {
    const { kept, state } = after(attemptsKeptMax + 7, 1)
    const { attemptLog } = state
    expect(attemptLog).toMatchObject({ first: 8 })
    expect(attemptLog?.chars).toEqual([...kept.values()].map(({ length }) => length))
    expect([...kept.keys()]).toEqual(Array.from({ length: attemptsKeptMax }, (_, at) => at + 8))
  })

  it("are fewer if they are long", () => {
    const { kept, state } = after(attemptsKeptMax, answerSampleBytesMax)
    const chars = [...kept.values()].reduce((sum, { length }) => sum + length, 0)
    expect(chars).toBeLessThanOrEqual(attemptsKeptCharsMax)
    expect(chars).toBeGreaterThan(attemptsKeptCharsMax - attemptCharsMax)
    expect(state.attemptLog?.chars).toHaveLength(kept.size)
  })

  it("go with the registration", () => {
    const { kept, state } = after(3, 1)
    const decision = decide(state, remove)
    expectEnd(decision)
    expect(decision.removals).toEqual([...kept.keys()])
    const gone = pushOf({ _tag: "PermanentFailure", code: 410, problem: "answered 410" })
    const ended = decide({ ...state, pushing: 8 }, gone, { head: 3 })
    expectEnd(ended)
    expect(ended.removals).toEqual([...kept.keys()])
    expect(ended.items).toBeUndefined()
  })

  it("are none in a state of before", () => {
    const { decode } = codecsOf(RegistrationState, RegistrationMessage)
    const before = decode(JSON.stringify(active))
    const described = decide(before, describeIt).answer
    expect(described).toMatchObject({ view: { attemptLog: undefined } })
    expect(decide(before, remove).removals).toBeUndefined()
  })
})

describe("an observed request", () => {
  const observerOf = async (callee: Parameters<typeof observed>[0]) => {
    let seen: ExchangeObserver | undefined
    const { exchange: made } = await Effect.runPromise(
      observed(callee, (observer) =>
        Effect.sync(() => {
          seen = observer
        }))
    )
    return { answersOf: seen?.answersOf, made }
  }

  it("shows the answers of the operator's network to the owner of the mailbox only", async () => {
    const owners = await observerOf({ callback, account: "alice" })
    expect(owners.answersOf).toBe("allowed")
    for (
      const callee of [
        { callback },
        // With the mailbox's password; also if the callback of the owner was moved by it.
        { callback, secretsVersion: 0 },
        { callback, account: "alice", secretsVersion: 0 }
      ]
    ) expect((await observerOf(callee)).answersOf).toBe("public")
  })

  it("has its time also if nothing was sent", async () => {
    const { made } = await observerOf({ callback })
    expect(made.beganAtMs).toBeGreaterThan(0)
    expect(made.requestHeaders).toEqual([])
  })
})
