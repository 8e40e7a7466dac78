/** The state of a recipient after an attempt or a retry, and its log item. Pure. */
import { Schema } from "effect"
import type { LogItem, Variant } from "../../runtime/index.ts"
import { bytesPerKeptAttempt, bytesPerRecipient, deferredMinMs, locationCharsMax, problemCharsMax,
  replaysPerHourMax, replaysWindowMs } from "../limits.ts"
import { type DeliveryOutcome, dueAtMs, type Schedule } from "../outbound/index.ts"
import { parseUrl } from "../parse-url.ts"
import { type AttemptLog, type NotificationMessage, type NotificationState, type NotificationStatus,
  RecipientState } from "./protocol.ts"

export type Queued = Variant<NotificationState, "Queued">

type Attempted = Variant<NotificationMessage, "Attempted">

/** Whether the recipient has no further attempt. */
export const hasEnded = ({ status }: RecipientState): boolean =>
  status === "success" || status === "failed"

/** The status of the whole notification. */
export const statusOf = (recipients: ReadonlyArray<RecipientState>): NotificationStatus => {
  if (!recipients.every(hasEnded)) return "waiting"
  return recipients.some(({ status }) => status === "failed") ? "failed" : "sent"
}

/** About how many bytes the state takes in memory: its recipients, of which it may have many. */
export const bytesOfQueued = ({ attemptLog = [], recipients }: Queued): number =>
  recipients.reduce(
    (bytes, { delivered, location = "", problem = "", to }) =>
      bytes + bytesPerRecipient + to.length + location.length + problem.length +
      (delivered?.location?.length ?? 0),
    attemptLog.length * bytesPerKeptAttempt
  )

/** Whether the number is that of the recipient's next attempt. */
export const isNext = (recipient: RecipientState | undefined, attempt: number): boolean =>
  recipient !== undefined && !hasEnded(recipient) && recipient.attempts + 1 === attempt

/** The last editions tried, with this one. One before the last edition is enough to name. */
export const withTried = (tried: ReadonlyArray<number>, edition: number): ReadonlyArray<number> =>
  [...tried.filter((one) => one !== edition), edition].toSorted((a, b) => a - b).slice(-2)

/** The recipient after an attempt. The outcome replaces that of the previous attempt. */
const afterResult = (
  schedule: Schedule,
  { attempts, delivered, to, tried = [], tries }: RecipientState,
  outcome: Exclude<DeliveryOutcome, { readonly _tag: "Deferred" }>,
  { edition = 0, exchange, random }: Pick<Attempted, "edition" | "exchange" | "random">,
  nowMs: number
): RecipientState => {
  const { durationMs: tookMs } = exchange ?? {}
  const attempted = {
    to,
    attempts: attempts + 1,
    tries: tries + 1,
    lastAtMs: nowMs,
    ...tookMs === undefined ? {} : { tookMs }
  }
  if (outcome._tag === "Delivered") {
    const { code, location = "" } = outcome
    const isKept = location !== "" && location.length <= locationCharsMax
    return { ...attempted, status: "success", code, ...isKept ? { location } : {} }
  }
  const { code } = outcome
  const problem = outcome.problem.slice(0, problemCharsMax)
  const editions = edition === 0 ? tried : withTried(tried, edition)
  const failure = {
    problem,
    ...editions.length === 0 ? {} : { tried: editions },
    ...code === undefined ? {} : { code },
    ...delivered === undefined ? {} : { delivered }
  }
  const nextAtMs = outcome._tag === "RetryableFailure"
    ? dueAtMs(schedule, attempted.tries, outcome, nowMs, random)
    : undefined
  return nextAtMs === undefined
    ? { ...attempted, status: "failed", ...failure }
    : { ...attempted, status: "retry", nextAtMs, ...failure }
}

/** The recipient after an attempt. A deferred attempt has sent nothing, and is repeated. */
export const afterAttempt = (
  schedule: Schedule,
  recipient: RecipientState,
  { outcome, ...attempt }: Pick<Attempted, "edition" | "exchange" | "outcome" | "random">,
  nowMs: number
): RecipientState =>
  outcome._tag === "Deferred"
    ? { ...recipient, nextAtMs: Math.max(outcome.untilMs, nowMs + deferredMinMs) }
    : afterResult(schedule, recipient, outcome, attempt, nowMs)

/** A failed recipient after a Retry: its attempts begin again at the start of the schedule. */
export const restarted = (recipient: RecipientState, nowMs: number): RecipientState => ({
  ...recipient,
  status: "retry",
  tries: 0,
  nextAtMs: nowMs
})

/* Retries by the sender: of the failed recipients, or a replay to some that it names. */

/** The format of the cluster with which recipients are named: older nodes retry the failed ones. */
export const replaysFormat = 3

/** A URI as recipients are compared: two spellings of one are one recipient. */
export const normalRecipient = (text: string): string => {
  const url = parseUrl(text)
  if (url === undefined) return text
  url.hash = ""
  return url.href
}

/** The indices of the recipients with one of these URIs. */
export const recipientsAt = (
  { recipients }: Pick<Queued, "recipients">,
  uris: ReadonlyArray<string>
): ReadonlyArray<number> => {
  const named = new Set(uris.map(normalRecipient))
  return recipients.flatMap(({ to }, at) => named.has(normalRecipient(to)) ? [at] : [])
}

/** Why a replay is not allowed; else when the last replays were, with this one. */
export type ReplayStart =
  | { readonly _tag: "Begins"; readonly replaysMs: ReadonlyArray<number> }
  | { readonly _tag: "TooMany"; readonly untilMs: number }
  | { readonly _tag: "Refused"; readonly reason: "Ended" | "Invalid"; readonly detail: string }

/** Whether the sender may replay to these recipients now. */
export const startReplay = (
  { followUps, recipients, replaysMs = [] }: Queued,
  named: ReadonlyArray<number>,
  nowMs: number
): ReplayStart => {
  const isKnown = named.length > 0 && named.every((at) => recipients[at] !== undefined)
  if (!isKnown) {
    return {
      _tag: "Refused",
      reason: "Invalid",
      detail: "a replay names recipients of the notification"
    }
  }
  // The recipient's state no longer has what a repetition of the last edition would replace.
  const isFollowed = followUps !== undefined &&
    named.some((at) => recipients[at]?.status === "success")
  if (isFollowed) {
    return {
      _tag: "Refused",
      reason: "Ended",
      detail:
        "the notification was replaced or withdrawn since a recipient got it: send a new one to it"
    }
  }
  // The clock may have been set back.
  const latest = replaysMs.filter((atMs) => Math.abs(nowMs - atMs) < replaysWindowMs)
  const [first = nowMs] = latest
  return latest.length < replaysPerHourMax
    ? { _tag: "Begins", replaysMs: [...latest, nowMs] }
    : { _tag: "TooMany", untilMs: first + replaysWindowMs }
}

/** A named recipient: tried from the start of the schedule, or, if it is tried anyway, now. */
const replayed = (recipient: RecipientState, nowMs: number): RecipientState => {
  if (!hasEnded(recipient)) {
    return (recipient.nextAtMs ?? nowMs) > nowMs ? { ...recipient, nextAtMs: nowMs } : recipient
  }
  const again = restarted(recipient, nowMs)
  if (recipient.status === "failed") return again
  // A follow-up names where the recipient has it, also if the repetition fails.
  const { location } = recipient
  return { ...again, delivered: { edition: 0, ...location === undefined ? {} : { location } } }
}

/** The recipients after a retry: of the named ones, or else of those that have failed. */
export const afterRetry = (
  { recipients }: Queued,
  named: ReadonlyArray<number> | undefined,
  nowMs: number
): ReadonlyArray<RecipientState> => {
  if (named === undefined) {
    return recipients.map((one) => one.status === "failed" ? restarted(one, nowMs) : one)
  }
  const chosen = new Set(named)
  return recipients.map((one, at) => chosen.has(at) ? replayed(one, nowMs) : one)
}

/**
 * The items of a log whose recipients are items, beside the documents: the state of one recipient
 * with the version of the notification, or an attempt (attempt-log.ts).
 */
const RecalledItem = Schema.fromJsonString(Schema.Union([
  Schema.Struct({ recipient: Schema.Number, version: Schema.Number, now: RecipientState }),
  Schema.Struct({ recipient: Schema.Number, attempt: Schema.Number })
]))

const decoded = Schema.decodeUnknownSync(RecalledItem)

export const encodeRecipient = (at: number, { recipients, version }: Queued): string =>
  JSON.stringify({ recipient: at, version, now: recipients[at] })

/**
 * The state with the recipients that are log items, and with the attempts beside them. Throws if a
 * recipient is missing.
 */
export const withRecipients = (state: Queued, log: ReadonlyArray<LogItem>): Queued => {
  const { cleaned, followUps = [], listed } = state
  if (listed === undefined) return state
  const recipients: Array<RecipientState> = []
  const items: Array<number> = []
  const attemptLog: Array<AttemptLog[number]> = [
    ...(state.attemptLog ?? []).filter(([n]) => n <= cleaned)
  ]
  let { version } = state
  for (const { n, value } of log) {
    if (n <= cleaned || followUps.some(({ item }) => item === n)) continue
    const item = decoded(value)
    if ("attempt" in item) {
      attemptLog.push([n, item.recipient, value.length])
      continue
    }
    recipients[item.recipient] = item.now
    items[item.recipient] = n
    version = Math.max(version, item.version)
  }
  const found = Object.keys(recipients).length
  if (found !== listed || recipients.length !== listed) {
    throw new RangeError(`the log has ${found} of ${listed} recipients`)
  }
  const attempts = attemptLog.length === 0 && state.attemptLog === undefined ? {} : { attemptLog }
  return { ...state, recipients, items, version, ...attempts }
}
