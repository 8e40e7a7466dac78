/**
 * The last attempts of an outgoing notification, with what was exchanged. Each is an item of its
 * log, appended by the decision on its result; the state has their numbers. Failures need more
 * explanation than successes: a success is kept only where there is room, and makes room for a
 * failure. The removal of the notification removes all. Pure.
 */
import { Schema } from "effect"
import type { DecisionContext, Variant } from "../../runtime/index.ts"
import { attemptDecoder, attemptFields, encodeAttempt, excessAttempts,
  nextAttempt } from "../attempts/index.ts"
import { problemCharsMax, recipientAttemptsKeptMax, relayAttemptsKeptCharsMax,
  relayAttemptsKeptMax } from "../limits.ts"
import type { DeliveryFailure, ExchangeRecord } from "../outbound/index.ts"
import { Count } from "../schemas.ts"
import type { Queued } from "./attempts.ts"
import type { AttemptLog, NotificationMessage, RecipientState } from "./protocol.ts"

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

/** An attempt: `follows` is a {@link RelayAttemptFollowUp}. */
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
  { attemptLog = [] }: Queued
): ReadonlyArray<number> => attemptLog.map(([n]) => n)

/** An attempt to append, what the log then has, and the items to remove for that. */
interface KeptAttempt {
  readonly item: string
  readonly attemptLog: AttemptLog
  readonly dropped: AttemptLog
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

/** An attempt as the state lists it. */
type ListedAttempt = AttemptLog[number]

/** The attempts in the order in which they make room: successes before failures, old before new. */
const dispensableFirst = (
  attempts: AttemptLog,
  recipients: ReadonlyArray<RecipientState>
): AttemptLog => {
  const last = new Map(attempts.map((one) => [one[1], one]))
  // A success is the last attempt, unless a follow-up or a replay came since.
  const isSuccess = (one: ListedAttempt): boolean =>
    recipients[one[1]]?.status === "success" && last.get(one[1]) === one
  return [...attempts.filter(isSuccess), ...attempts.filter((one) => !isSuccess(one))]
}

/**
 * The log with another attempt. The oldest ones make room: of the recipient first, then those of
 * all, with successes first.
 */
const withAttempt = (
  { attemptLog = [], recipients }: Queued,
  added: ListedAttempt
): Pick<KeptAttempt, "attemptLog" | "dropped"> => {
  const all = [...attemptLog, added]
  const own = all.filter(([, at]) => at === added[1])
  const [outdated] = own.length > recipientAttemptsKeptMax ? own : []
  const rest = all.filter((one) => one !== outdated)
  const isFree = rest.length <= relayAttemptsKeptMax &&
    rest.reduce((sum, [, , chars]) => sum + chars, 0) <= relayAttemptsKeptCharsMax
  const order = isFree ? rest : dispensableFirst(rest, recipients)
  const excess = excessAttempts(order.map(([, , chars]) => chars), {
    countMax: relayAttemptsKeptMax,
    charsMax: relayAttemptsKeptCharsMax
  })
  const dropped = new Set(order.slice(0, excess))
  if (outdated !== undefined) dropped.add(outdated)
  return {
    attemptLog: all.filter((one) => !dropped.has(one)),
    dropped: [...dropped]
  }
}

/** A success whose request and answer are known; a local delivery has neither. */
const isKeptSuccess = ({ exchange, isLocal }: Attempted): boolean =>
  isLocal !== true && exchange !== undefined && exchange.requestHeaders.length > 0

/** What is kept of the attempt; undefined if it was none. */
const attemptOf = (
  { attempt, isLocal, outcome, recipient }: Attempted,
  exchange: ExchangeRecord,
  after: RecipientState,
  nowMs: number
): RelayAttempt | undefined => {
  if (outcome._tag === "Deferred") return undefined
  if (outcome._tag === "Delivered") {
    const { nextAtMs } = after
    return nextAtMs === undefined
      ? { recipient, attempt, exchange, follows: "done" }
      : { recipient, attempt, exchange, follows: "follow-up", nextAtMs }
  }
  return {
    recipient,
    attempt,
    ...isLocal === true ? { isLocal } : {},
    exchange,
    problem: outcome.problem.slice(0, problemCharsMax),
    ...followUpOf(outcome, after, nowMs)
  }
}

/**
 * The attempt to keep, as the next log item, when its result has led to the state `after` of its
 * recipient. Undefined for a success without a request or without room, for a deferral, since that
 * was no attempt, and while older nodes may load the notification.
 */
export const keptAttempt = (
  state: Queued,
  message: Attempted,
  after: RecipientState,
  { format, head, nowMs }: DecisionContext
): KeptAttempt | undefined => {
  const { exchange, outcome, recipient } = message
  if (exchange === undefined || format < relayAttemptsFormat) return undefined
  const isSuccess = outcome._tag === "Delivered"
  if (isSuccess && !isKeptSuccess(message)) return undefined
  const attempt = attemptOf(message, exchange, after, nowMs)
  if (attempt === undefined) return undefined
  const item = encodeAttempt(attempt)
  const kept = { item, ...withAttempt(state, [head + 1, recipient, item.length]) }
  // Where others would have to make room for it, the state of its recipient is enough.
  return isSuccess && kept.dropped.some(([, at]) => at !== recipient) ? undefined : kept
}
