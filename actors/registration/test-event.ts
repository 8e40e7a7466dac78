/**
 * Test events of a registration (protocol §1.4): one push without a new change and without retries,
 * to find out whether the callback gets what is pushed. Its result changes nothing but the record
 * of the last test: neither the cursor, nor the count of failures, nor the status. The exception is
 * a push service that wants no more: its endpoint has never been verified. Pure.
 */
import { Schema } from "effect"
import { browserReplaysPerMinuteMax, registrationLeaseMs, testsPerMinuteMax } from "../limits.ts"
import { DeliveryOutcome } from "../outbound/index.ts"
import { Count } from "../schemas.ts"

/** The format with which test events and TooManyReplays are sent: older nodes know neither. */
export const testEventsFormat = 2

/** The format with which ReadSecrets is sent. */
export const readSecretsFormat = 3

const minuteMs = 60_000

/** The last test event, and what came of it, if that is known. */
export const TestEvent = Schema.Struct({
  /** Left out if it was sent to a previous callback, or for previous keys of a browser. */
  id: Schema.optionalKey(Schema.String),
  /** When the latest ones began, the last one at the end: those of a minute are bounded. */
  startsMs: Schema.Array(Count),
  outcome: Schema.optionalKey(DeliveryOutcome),
  /** It was not sent, since its mailbox had as many as a minute may have. */
  isExcess: Schema.optionalKey(Schema.Boolean),
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
  /** It was one too many of its mailbox; another may begin at this time. */
  readonly excessUntilMs: number | undefined
}

/** Nobody is pushed to before the callback has agreed, also not by a test. */
export const testUnverified = "the test was not sent, as the callback has not answered the " +
  "challenge of this registration yet: verify it, and send the test when it is active"

/** Tests must not burden an endpoint that no browser has named, and that has refused. */
export const testRejected = "the test was not sent, as the push service has rejected the last " +
  "push to this endpoint: subscribe the browser again, or resume the registration by PUT, and " +
  "send the test after that"

const startOf = ({ startsMs }: TestEvent): number => startsMs.at(-1) ?? 0

const isRunning = (test: TestEvent, nowMs: number): boolean =>
  test.id !== undefined && test.outcome === undefined && nowMs < startOf(test) + registrationLeaseMs

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
  // A request whose test was one too many may be repeated.
  const isKnown = previous?.id === id && previous.isExcess !== true
  if (previous !== undefined && (isKnown || isRunning(previous, nowMs))) return { _tag: "Known" }
  const start = startWithin(previous?.startsMs ?? [], testsPerMinuteMax, nowMs)
  return start._tag === "TooMany"
    ? start
    : { _tag: "Begins", test: { id, startsMs: start.startsMs } }
}

/** What follows a request, if so many test events of a minute are allowed. */
type TestRateStart =
  /** One begins: the starts of the last minute have it. */
  | { readonly _tag: "Begins"; readonly startsMs: ReadonlyArray<number> }
  | Extract<TestEventStart, { readonly _tag: "TooMany" }>

/** Begins one more than those that began at `startsMs`, unless a minute already has `max`. */
export const startWithin = (
  startsMs: ReadonlyArray<number>,
  max: number,
  nowMs: number
): TestRateStart => {
  // A clock that was set back must not hold tests back for longer than the minute.
  const recent = startsMs.filter((startMs) => startMs <= nowMs && startMs > nowMs - minuteMs)
  const [first = 0] = recent
  return recent.length < max
    ? { _tag: "Begins", startsMs: [...recent, nowMs] }
    : { _tag: "TooMany", untilMs: first + minuteMs }
}

/** The result of a test event. */
interface TestResult extends Pick<TestEvent, "durationMs" | "isExcess"> {
  readonly outcome: DeliveryOutcome
}

/** The test event with its result. */
export const endTest = (
  test: TestEvent,
  { durationMs, isExcess, outcome }: TestResult
): TestEvent => ({
  ...test,
  outcome,
  ...durationMs === undefined ? {} : { durationMs },
  ...isExcess === undefined ? {} : { isExcess }
})

/** The state after its callback has changed: of the tests, only what bounds their rate stays. */
export const withoutTestResult = <State extends { readonly test?: TestEvent }>(
  state: State
): State => state.test === undefined ? state : { ...state, test: { startsMs: state.test.startsMs } }

const problemOf = (outcome: DeliveryOutcome, isExcess: boolean): string | undefined => {
  switch (outcome._tag) {
    case "Delivered":
      return undefined
    case "Deferred": {
      const reason = isExcess
        ? "the registrations of this mailbox had too many tests, so that none is sent until "
        : "requests to this origin, or of this account, are held back until "
      const until = new Date(outcome.untilMs).toISOString()
      return `it was not sent: ${reason}${until}; send a test after that`
    }
    default:
      return outcome.problem
  }
}

/** The last test event for readers; undefined if it was sent to a previous callback. */
export const testEventView = (test: TestEvent, nowMs: number): TestEventView | undefined => {
  const { durationMs, id, isExcess = false, outcome } = test
  if (id === undefined) return undefined
  const excessUntilMs = isExcess && outcome?._tag === "Deferred" ? outcome.untilMs : undefined
  const found = { id, startedAtMs: startOf(test), durationMs, excessUntilMs }
  if (outcome === undefined) {
    const status = isRunning(test, nowMs) ? "pending" : "unknown"
    return { ...found, status, code: undefined, problem: undefined }
  }
  return {
    ...found,
    status: outcome._tag === "Delivered" ? "delivered" : "failed",
    code: "code" in outcome ? outcome.code : undefined,
    problem: problemOf(outcome, isExcess)
  }
}

/* Replays: an Update lets pushes go on from another position, to an end or for good. */

/** The format with which a replay with an end is asked for: an older node would know no end. */
export const replayEndsFormat = 3

export const tooManyReplays = "the position was not changed, as it may be changed " +
  `${browserReplaysPerMinuteMax} times in a minute for a browser: send it again later`

/** What is known of a registration whose pushes go back. */
interface Replayed {
  readonly form: string
  readonly cursor: number
  readonly replay?: { readonly end: number; readonly resume: number }
  readonly replaysMs?: ReadonlyArray<number>
}

/** The part of an Update that moves the cursor. */
interface ReplayRequest {
  readonly cursor?: number
  readonly replayEnd?: number
}

type Moved = Pick<Replayed, "cursor" | "replay" | "replaysMs">

/** What follows a request that moves the cursor. */
type ReplayStart =
  /** It is allowed: the state then has this, too. A replay that runs is over without `replay`. */
  | { readonly _tag: "Begins"; readonly changed: Moved }
  | { readonly _tag: "TooMany"; readonly untilMs: number }

/**
 * Where the cursor goes by an Update. A replay whose end lies before what has been pushed is a
 * range: what follows it was pushed already, or waits. Else pushes from `cursor` on are in order.
 */
const moved = (
  { cursor, replay }: Replayed,
  { cursor: from, replayEnd }: ReplayRequest
): Pick<Moved, "cursor" | "replay"> => {
  if (from === undefined) return { cursor, ...replay === undefined ? {} : { replay } }
  const resume = replay?.resume ?? cursor
  if (replayEnd === undefined || replayEnd >= resume) return { cursor: from }
  return from >= replayEnd
    ? { cursor: resume }
    : { cursor: from, replay: { end: replayEnd, resume } }
}

/**
 * Begins the replay of an Update, if it asks for one. The endpoint of a browser was never verified:
 * pushes to it go back so often in a minute.
 */
export const startReplay = (
  state: Replayed,
  message: ReplayRequest,
  nowMs: number
): ReplayStart => {
  const { cursor, form, replaysMs = [] } = state
  const changed = moved(state, message)
  if (form !== "webpush" || message.cursor === undefined || message.cursor > cursor) {
    return { _tag: "Begins", changed }
  }
  const start = startWithin(replaysMs, browserReplaysPerMinuteMax, nowMs)
  return start._tag === "TooMany"
    ? start
    : { _tag: "Begins", changed: { ...changed, replaysMs: start.startsMs } }
}

/** The cursor after a push up to `upTo`: a replay at its end goes on where pushes were before. */
export const advanced = (
  { replay }: Pick<Replayed, "replay">,
  upTo: number
): Pick<Moved, "cursor" | "replay"> => {
  if (replay === undefined) return { cursor: upTo }
  return upTo >= replay.end ? { cursor: replay.resume } : { cursor: upTo, replay }
}
