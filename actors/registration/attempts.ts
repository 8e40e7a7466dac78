/**
 * The last attempts to push, to verify and to test. They are items of the registration's log, so
 * that a push does not write all of them again; the state has their numbers. An attempt is appended
 * by the decision on its result. The end of the registration removes all of them.
 */
import { type Clock, Effect, Schema } from "effect"
import { type Decision, type DecisionContext, type Variant } from "../../runtime/index.ts"
import { attemptDecoder, attemptFields, encodeAttempt, excessAttempts,
  nextAttempt } from "../attempts/index.ts"
import { attemptsKeptCharsMax, attemptsKeptMax } from "../limits.ts"
import type { DeliveryOutcome, ExchangeObserver, ExchangeRecord } from "../outbound/index.ts"
import type { Callee, RegistrationAction, RegistrationReply,
  RegistrationState } from "./protocol.ts"

/** What follows an attempt, and why. */
export type AttemptFollowUp =
  /** It has succeeded. */
  | "done"
  /** Another attempt, by the retry schedule. */
  | "schedule"
  /** Another attempt, when the receiver has asked for it by Retry-After. */
  | "retry-after"
  /** None: pushes have failed for too long, or the push service rejects every push. */
  | "suspended"
  /** None: a test is not repeated. */
  | "none"
  /** None: the callback has answered the challenge wrongly, or too often not at all. */
  | "given-up"

type AttemptKind = "push" | "verification" | "test"

/** One attempt: its kind is an {@link AttemptKind}, and what follows {@link AttemptFollowUp}. */
const RegistrationAttempt = Schema.Struct({ kind: Schema.String, ...attemptFields })

export type RegistrationAttempt = typeof RegistrationAttempt.Type

/** The attempt in a log item; undefined if a newer version has stored what this one cannot read. */
export const decodeAttempt = attemptDecoder(RegistrationAttempt)

/**
 * Whose answers are kept: those of every address if the owner of the mailbox chose the callback.
 * Others could read the operator's own network, as far as `OUTBOUND_ALLOW` permits it. Who may see
 * an answer of a private address is decided when it is read.
 */
const answersOf = ({ account, secretsVersion }: Callee): ExchangeObserver["answersOf"] =>
  account !== undefined && secretsVersion === undefined ? "allowed" : "public"

/** An outcome with what was exchanged for it. */
export interface Observed<Outcome> {
  readonly outcome: Outcome
  readonly exchange: ExchangeRecord
}

/** Makes a request to the callback, and observes it. */
export const observed = <Outcome>(
  callee: Callee,
  request: (observer: ExchangeObserver, clock: Clock.Clock) => Effect.Effect<Outcome>
): Effect.Effect<Observed<Outcome>> =>
  Effect.clockWith((clock) => {
    const beganAtMs = clock.currentTimeMillisUnsafe()
    let last: ExchangeRecord | undefined
    const observer: ExchangeObserver = {
      answersOf: answersOf(callee),
      record: (record) => {
        last = record
      }
    }
    return Effect.map(request(observer, clock), (outcome) => {
      const durationMs = Math.max(0, clock.currentTimeMillisUnsafe() - beganAtMs)
      return { outcome, exchange: last ?? { beganAtMs, durationMs, requestHeaders: [] } }
    })
  })

type Registered = Variant<RegistrationState, "Registered">

type RegistrationDecision = Decision<RegistrationState, RegistrationReply, RegistrationAction>

/** A message with the result of an attempt. */
interface AttemptResult {
  readonly outcome: DeliveryOutcome
  readonly exchange?: ExchangeRecord
}

type FinalOutcome = Exclude<DeliveryOutcome, { readonly _tag: "Deferred" }>

/** What follows in the state that the result has led to. */
const followUpOf = (
  kind: AttemptKind,
  outcome: FinalOutcome,
  { endpointRejects = false, intent, nextAtMs, status }: Registered,
  nowMs: number
): { readonly follows: AttemptFollowUp; readonly nextAtMs?: number } => {
  if (outcome._tag === "Delivered") return { follows: "done" }
  if (kind === "test") return { follows: endpointRejects ? "suspended" : "none" }
  if (kind === "push" && status === "suspended") return { follows: "suspended" }
  const dueAtMs = kind === "push" ? nextAtMs : intent?.nextAtMs
  if (dueAtMs === undefined) return { follows: "given-up" }
  return nextAttempt(outcome, dueAtMs, nowMs)
}

/** The decision on a result, which also appends the attempt and removes the oldest ones. */
const withAttempt = (
  decision: RegistrationDecision,
  kind: AttemptKind,
  { exchange, outcome }: AttemptResult,
  { head, nowMs }: DecisionContext
): RegistrationDecision => {
  const { durable, nextState: state } = decision
  // A deferred attempt was not made, and one whose result changes nothing explains nothing.
  if (exchange === undefined || outcome._tag === "Deferred" || !durable) return decision
  if (state?._tag !== "Registered") return decision
  const attempt: RegistrationAttempt = {
    kind,
    exchange,
    ...outcome._tag === "Delivered" ? {} : { problem: outcome.problem },
    ...followUpOf(kind, outcome, state, nowMs)
  }
  const item = encodeAttempt(attempt)
  const { attemptLog = { first: head + 1, chars: [] } } = state
  const chars = [...attemptLog.chars, item.length]
  const bounds = { countMax: attemptsKeptMax, charsMax: attemptsKeptCharsMax }
  const removed = chars.splice(0, excessAttempts(chars, bounds))
    .map((_, at) => attemptLog.first + at)
  const first = attemptLog.first + removed.length
  decision.append(item).become({ ...state, attemptLog: { first, chars } })
  return removed.length === 0 ? decision : decision.removeItems(...removed)
}

/** The cell of a result, which also keeps the attempt. */
export const keepsAttempts = <Result extends AttemptResult>(
  kind: AttemptKind,
  cell: (
    state: Registered,
    result: Result,
    context: DecisionContext
  ) => RegistrationDecision | Decision<never>
) =>
(state: Registered, result: Result, context: DecisionContext): RegistrationDecision =>
  withAttempt(cell(state, result, context), kind, result, context)

/** The numbers of the log items that are attempts. */
export const attemptItems = ({ attemptLog }: Registered): ReadonlyArray<number> =>
  attemptLog === undefined ? [] : attemptLog.chars.map((_, at) => attemptLog.first + at)
