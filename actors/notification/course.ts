/**
 * The course of a notification: which attempts begin, what is written, when it goes on. Pure.
 *
 * While attempts are under way the stored wake-up is past, and held: after a crash it fires at
 * once and all that is due is begun again. Otherwise it is stored for the next time.
 */
import { append, become, stay } from "../../runtime/index.ts"
import type { Decision, DecisionContext } from "../../runtime/index.ts"
import { attemptLeaseMs, attemptsAtOnceMax } from "../limits.ts"
import { documentAtHandCharsMax, recipientsInlineMax, resultsFoldedAt } from "../limits.ts"
import { encodeResult, hasEnded, type Queued, statusOf } from "./attempts.ts"
import type {
  NotificationAction,
  NotificationReply,
  NotificationState,
  UnderWay
} from "./protocol.ts"

export type NotificationDecision = Decision<
  NotificationState,
  NotificationReply,
  NotificationAction
>

/** The log items that may go: results that the record does not tell. */
const unfolded = ({ folded }: Queued, head: number): ReadonlyArray<number> =>
  Array.from({ length: Math.max(0, head - folded) }, (_, at) => folded + 1 + at)

/** Writes the state, with all that the log tells. */
const write = (state: Queued, { head }: DecisionContext): NotificationDecision => {
  const decision = become<NotificationState>({ ...state, folded: head })
  const results = unfolded(state, head)
  return results.length === 0 ? decision : decision.remove(...results)
}

/** Writes how one recipient stands. */
const writeResult = (state: Queued, at: number, context: DecisionContext): NotificationDecision =>
  state.recipients.length <= recipientsInlineMax || state.endedAtMs !== undefined ||
    context.head - state.folded >= resultsFoldedAt
    ? write(state, context)
    : append<NotificationState>(encodeResult(at, state)).remember(state)

/** Removes the notification. */
export const remove = (state: Queued, { head, nowMs }: DecisionContext): NotificationDecision => {
  const { account, listedAs } = state
  return become<NotificationState>({ _tag: "Removed", account, removedAtMs: nowMs })
    .remove(1, ...unfolded(state, head))
    .wake(null)
    .perform<NotificationAction>({ _tag: "Note", listedAs, status: null })
}

/** So many recipients that are due and not among the busy ones, the longest due first. */
const firstDue = (
  { recipients }: Queued,
  busy: ReadonlySet<number>,
  room: number,
  nowMs: number
): ReadonlyArray<number> => {
  if (room === 0) return []
  const due: Array<number> = []
  const dueMs: Array<number> = []
  let isOrdered = true
  let lastMs = 0
  for (let at = 0; at < recipients.length; at++) {
    const recipient = recipients[at]
    if (recipient === undefined || hasEnded(recipient)) continue
    const { nextAtMs = nowMs } = recipient
    if (nextAtMs > nowMs || busy.has(at)) continue
    isOrdered &&= nextAtMs >= lastMs
    lastMs = nextAtMs
    due.push(at)
    dueMs[at] = nextAtMs
  }
  if (!isOrdered) due.sort((one, other) => (dueMs[one] ?? 0) - (dueMs[other] ?? 0))
  return due.length > room ? due.slice(0, room) : due
}

const begunAt = (recipients: ReadonlyArray<number>, nowMs: number): ReadonlyArray<UnderWay> =>
  recipients.map((recipient) => ({ recipient, untilMs: nowMs + attemptLeaseMs }))

/**
 * What is under way beside the attempt at `told`. After a reload that is not known: then what is
 * due may be, since this message is no wake-up, which would begin it.
 */
export const underWayOf = (
  state: Queued,
  told: number | undefined,
  nowMs: number
): ReadonlyArray<UnderWay> => {
  const { underWay } = state
  if (underWay !== undefined) return underWay.filter(({ recipient }) => recipient !== told)
  const busy = new Set(told === undefined ? [] : [told])
  return begunAt(firstDue(state, busy, attemptsAtOnceMax - busy.size, nowMs), nowMs)
}

interface Begun {
  readonly started: ReadonlyArray<number>
  readonly underWay: ReadonlyArray<UnderWay>
  /** When there is something to do, if nothing comes before. */
  readonly nextAtMs: number
}

/** Begins what is due, as far as there is room. */
const begin = (state: Queued, nowMs: number): Begun => {
  const going = state.underWay?.filter(({ untilMs }) => untilMs > nowMs) ?? []
  const busy = new Set<number>()
  let attempts = 0
  let nextAtMs = Number.POSITIVE_INFINITY
  for (const { deferred, recipient, untilMs } of going) {
    busy.add(recipient)
    if (deferred !== true) attempts += 1
    if (untilMs < nextAtMs) nextAtMs = untilMs
  }
  const started = firstDue(state, busy, Math.max(0, attemptsAtOnceMax - attempts), nowMs)
  const underWay = started.length === 0 ? going : [...going, ...begunAt(started, nowMs)]
  if (started.length > 0) nextAtMs = Math.min(nextAtMs, nowMs + attemptLeaseMs)
  for (const recipient of state.recipients) {
    // What is due begins when another attempt has ended.
    const { nextAtMs: atMs = 0 } = recipient
    if (atMs > nowMs && atMs < nextAtMs && !hasEnded(recipient)) nextAtMs = atMs
  }
  return { started, underWay, nextAtMs }
}

const attemptAt = (state: Queued, at: number, document: string | undefined): NotificationAction => {
  const recipient = state.recipients[at]
  if (recipient === undefined) throw new RangeError(`there is no recipient ${at}`)
  const { account, chars, traceId } = state
  return {
    _tag: "Attempt",
    recipient: at,
    attempt: recipient.attempts + 1,
    to: recipient.to,
    traceId,
    account,
    document,
    chars
  }
}

/** What has changed, and so is written: nothing, how one recipient stands, or all. */
export type NotificationChange =
  | { readonly _tag: "Nothing" }
  | { readonly _tag: "Result"; readonly at: number }
  | { readonly _tag: "All"; readonly document?: string }

const written = (
  state: Queued,
  change: NotificationChange,
  context: DecisionContext
): NotificationDecision => {
  switch (change._tag) {
    case "Nothing":
      return stay<NotificationState>().remember(state)
    case "Result":
      return writeResult(state, change.at, context)
    case "All":
      return change.document === undefined
        ? write(state, context)
        : become<NotificationState>(state).append(change.document)
  }
}

/** Goes on in `given`, some of whose recipients have not ended. */
export const goOn = (
  given: Queued,
  change: NotificationChange,
  context: DecisionContext
): NotificationDecision => {
  const { nowMs } = context
  const { nextAtMs, started, underWay } = begin(given, nowMs)
  const state: Queued = { ...given, underWay }
  const decision = written(state, change, context)
  const document = change._tag === "All" ? change.document : undefined
  const isSmall = given.chars <= documentAtHandCharsMax
  for (const at of started) {
    decision.perform<NotificationAction>(attemptAt(state, at, isSmall ? document : undefined))
  }
  if (underWay.length === 0) return decision.wake(nextAtMs)
  // A wake-up that began something is past; what a request begins stores one.
  return (change._tag === "All" ? decision.wake(nowMs) : decision).hold(nextAtMs)
}

/** All recipients have ended: it is kept for a while. */
export const end = (
  given: Queued,
  at: number,
  keepMs: number,
  context: DecisionContext
): NotificationDecision => {
  const { nowMs } = context
  const state: Queued = { ...given, endedAtMs: nowMs, underWay: [] }
  const { listedAs, recipients } = state
  return writeResult(state, at, context)
    .wake(nowMs + keepMs)
    .perform<NotificationAction>({ _tag: "Note", listedAs, status: statusOf(recipients) })
}
