/**
 * Test events of a registration (protocol §1.4): one push without a change and without retries, to
 * find out whether the callback gets what is pushed. Its result changes nothing but the record of
 * the last test: neither the cursor, nor the count of failures, nor the status. Pure.
 */
import { Schema } from "effect"
import { registrationLeaseMs, testsPerMinuteMax } from "../limits.ts"
import { DeliveryOutcome } from "../outbound/index.ts"
import { Count } from "../schemas.ts"

const minuteMs = 60_000

/** The last test event, and what came of it, if that is known. */
export const TestEvent = Schema.Struct({
  id: Schema.String,
  /** When the latest ones began, the last one at the end: those of a minute are bounded. */
  startsMs: Schema.Array(Count),
  outcome: Schema.optionalKey(DeliveryOutcome),
  /** From the begin of the request to the end of the answer. */
  durationMs: Schema.optionalKey(Count)
})

export type TestEvent = typeof TestEvent.Type

/** `unknown`: the node that has sent it ended before the answer. */
export type TestEventStatus = "pending" | "delivered" | "failed" | "unknown"

/** A test event as readers of the mailbox see it. */
export interface TestEventView {
  readonly id: string
  readonly status: TestEventStatus
  readonly startedAtMs: number
  readonly code: number | undefined
  readonly problem: string | undefined
  readonly durationMs: number | undefined
}

/** Nobody is pushed to before the callback has agreed, also not by a test. */
export const testUnverified = "the test was not sent, as the callback has not answered the " +
  "challenge of this registration yet: verify it, and send the test when it is active"

const startOf = ({ startsMs }: TestEvent): number => startsMs.at(-1) ?? 0

const isRunning = (test: TestEvent, nowMs: number): boolean =>
  test.outcome === undefined && nowMs < startOf(test) + registrationLeaseMs

/** What follows a request for a test event. */
export type TestEventStart =
  /** It begins. */
  | { readonly _tag: "Begins"; readonly test: TestEvent }
  /** It has begun, or another one runs, whose result is that of both. */
  | { readonly _tag: "Known" }
  /** There were {@link testsPerMinuteMax} in the last minute. */
  | { readonly _tag: "TooMany"; readonly untilMs: number }

/** Begins a test event, unless one runs or the bound of a minute is reached. */
export const startTest = (
  previous: TestEvent | undefined,
  id: string,
  nowMs: number
): TestEventStart => {
  if (previous !== undefined && (previous.id === id || isRunning(previous, nowMs))) {
    return { _tag: "Known" }
  }
  // A clock that was set back must not hold tests back for longer than the minute.
  const recent = (previous?.startsMs ?? [])
    .filter((startMs) => startMs <= nowMs && startMs > nowMs - minuteMs)
  const [first = 0] = recent
  return recent.length < testsPerMinuteMax
    ? { _tag: "Begins", test: { id, startsMs: [...recent, nowMs] } }
    : { _tag: "TooMany", untilMs: first + minuteMs }
}

/** The test event with its result. */
export const endTest = (
  test: TestEvent,
  { durationMs, outcome }: Pick<TestEvent, "durationMs"> & { readonly outcome: DeliveryOutcome }
): TestEvent => ({ ...test, outcome, ...durationMs === undefined ? {} : { durationMs } })

const problemOf = (outcome: DeliveryOutcome): string | undefined => {
  switch (outcome._tag) {
    case "Delivered":
      return undefined
    case "Deferred":
      return "it was not sent: requests to this origin, or of this account, are held back until " +
        `${new Date(outcome.untilMs).toISOString()}; send a test after that`
    default:
      return outcome.problem
  }
}

/** The last test event for readers. */
export const testEventView = (test: TestEvent, nowMs: number): TestEventView => {
  const { durationMs, id, outcome } = test
  const found = { id, startedAtMs: startOf(test), durationMs }
  if (outcome === undefined) {
    const status = isRunning(test, nowMs) ? "pending" : "unknown"
    return { ...found, status, code: undefined, problem: undefined }
  }
  return {
    ...found,
    status: outcome._tag === "Delivered" ? "delivered" : "failed",
    code: "code" in outcome ? outcome.code : undefined,
    problem: problemOf(outcome)
  }
}
