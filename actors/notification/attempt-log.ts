/**
 * The last failed attempts of an outgoing notification, with what was exchanged. Each is an item of
 * its log, appended by the decision on its result; the state has their numbers. A success appends
 * none: the recipient has its time, its duration and its code, so that a relay that succeeds at
 * once costs no more than these. The removal of the notification removes all. Pure.
 */
import { Schema } from "effect"
import type { DecisionContext, Variant } from "../../runtime/index.ts"
import { attemptDecoder, attemptFields, encodeAttempt, excessAttempts,
  nextAttempt } from "../attempts/index.ts"
import { problemCharsMax, recipientAttemptsKeptMax, relayAttemptsKeptCharsMax,
  relayAttemptsKeptMax } from "../limits.ts"
import type { DeliveryFailure } from "../outbound/index.ts"
import { Count } from "../schemas.ts"
import type { AttemptLog, NotificationMessage, NotificationState,
  RecipientState } from "./protocol.ts"

/** The format of the cluster with which attempts are kept: older nodes cannot read these items. */
export const relayAttemptsFormat = 3

/** What follows an attempt, and why. */
export type RelayAttemptFollowUp =
  /** It has succeeded. */
  | "done"
  /** Another attempt, by the retry schedule. */
  | "schedule"
  /** Another attempt, when the recipient has asked for it by Retry-After. */
  | "retry-after"
  /** Another attempt, which sends what has replaced or withdrawn the notification meanwhile. */
  | "follow-up"
  /** None: a repetition would not help. */
  | "permanent"
  /** None: the retry schedule has ended. */
  | "given-up"

/** A failed attempt: `follows` is a {@link RelayAttemptFollowUp}. */
const RelayAttempt = Schema.Struct({
  /** The index of the recipient, and the number of the attempt there, from 1. */
  recipient: Count,
  attempt: Count,
  /** It was a local delivery, without a request. */
  isLocal: Schema.optionalKey(Schema.Boolean),
  ...attemptFields
})

export type RelayAttempt = typeof RelayAttempt.Type

/** The attempt in a log item; undefined if a newer version has stored what this one cannot read. */
export const decodeRelayAttempt = attemptDecoder(RelayAttempt)

type Attempted = Variant<NotificationMessage, "Attempted">

/** The numbers of the log items that are attempts. */
export const attemptItems = (
  { attemptLog = [] }: Variant<NotificationState, "Queued">
): ReadonlyArray<number> => attemptLog.map(([n]) => n)

/** An attempt to append, what the log then has, and the items to remove for that. */
interface KeptAttempt {
  readonly item: string
  readonly attemptLog: AttemptLog
  readonly dropped: ReadonlyArray<number>
}

/** What follows a failure that has led to this state of its recipient. */
const followUpOf = (
  failure: DeliveryFailure,
  { nextAtMs, tries }: RecipientState,
  nowMs: number
): { readonly follows: RelayAttemptFollowUp; readonly nextAtMs?: number } => {
  if (nextAtMs === undefined) {
    return { follows: failure._tag === "PermanentFailure" ? "permanent" : "given-up" }
  }
  // Its own attempt counts, unless the schedule has begun again for another edition.
  return tries === 0 ? { follows: "follow-up", nextAtMs } : nextAttempt(failure, nextAtMs, nowMs)
}

/** The log with the attempt at number `n`: the oldest ones make room, of the recipient first. */
const withAttempt = (
  log: AttemptLog,
  [n, recipient, chars]: AttemptLog[number]
): Pick<KeptAttempt, "attemptLog" | "dropped"> => {
  const all: AttemptLog = [...log, [n, recipient, chars]]
  const own = all.filter(([, at]) => at === recipient)
  const [outdated] = own.length > recipientAttemptsKeptMax ? own : []
  const rest = all.filter((one) => one !== outdated)
  const excess = excessAttempts(rest.map(([, , length]) => length), {
    countMax: relayAttemptsKeptMax,
    charsMax: relayAttemptsKeptCharsMax
  })
  const dropped = [...outdated === undefined ? [] : [outdated], ...rest.slice(0, excess)]
  return { attemptLog: rest.slice(excess), dropped: dropped.map(([item]) => item) }
}

/**
 * The attempt to keep, as the next log item, when its result has led to the state `after` of its
 * recipient. Undefined for a success, for a deferral, since that was no attempt, and while older
 * nodes may load the notification.
 */
export const keptAttempt = (
  { attemptLog = [] }: Variant<NotificationState, "Queued">,
  { attempt, exchange, isLocal, outcome, recipient }: Attempted,
  after: RecipientState,
  { format, head, nowMs }: DecisionContext
): KeptAttempt | undefined => {
  if (exchange === undefined || format < relayAttemptsFormat) return undefined
  if (outcome._tag === "Delivered" || outcome._tag === "Deferred") return undefined
  const kept: RelayAttempt = {
    recipient,
    attempt,
    ...isLocal === true ? { isLocal } : {},
    exchange,
    problem: outcome.problem.slice(0, problemCharsMax),
    ...followUpOf(outcome, after, nowMs)
  }
  const item = encodeAttempt(kept)
  return { item, ...withAttempt(attemptLog, [head + 1, recipient, item.length]) }
}
