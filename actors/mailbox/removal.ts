/**
 * The removal of notifications: by a reader, when their retention after retrieval has passed, or
 * with the mailbox. While there are registrations, an event in the log records it. Pure.
 */
import { become, type Decision, type DecisionContext, stay,
  type Variant } from "../../runtime/index.ts"
import { eventRetentionMs, expiryReadRetryMs, removalsMax, removalsPerEvent, removedRangesMax,
  retentionSteps, retrievedPerDecisionMax, retrievedRangesMax } from "../limits.ts"
import { encodeRemoval, notificationId } from "./log-item.ts"
import type { MailboxAction, MailboxMessage, MailboxReply, MailboxState,
  Removal } from "./protocol.ts"
import { covers, first, include, type Range, type Retrieval, retrieve, subtract,
  total } from "./ranges.ts"
import { signalBackgroundTasks, signalRegistrations } from "./signals.ts"

type Open = Variant<MailboxState, "Open">

type Destroyed = Variant<MailboxState, "Destroyed">

const done: MailboxReply = { _tag: "Done" }

/** When the first retention passes; null if nothing was retrieved. */
export const nextTimerMs = (state: Open): number | null => {
  const firstAtMs = state.retrieved.reduce(
    (least, { atMs }) => Math.min(least, atMs),
    Number.POSITIVE_INFINITY
  )
  return firstAtMs === Number.POSITIVE_INFINITY ? null : firstAtMs + state.settings.retentionMs
}

const points = (numbers: ReadonlyArray<number>): ReadonlyArray<Range> =>
  numbers.map((n) => ({ from: n, to: n }))

/** The retrievals with another one. */
const withRetrieval = (state: Open, whole: Retrieval): ReadonlyArray<Retrieval> => {
  const stepMs = Math.max(1, Math.ceil(state.settings.retentionMs / retentionSteps))
  return retrieve(state.retrieved, whole, stepMs, retrievedRangesMax)
}

/** The state without these items; `events` of them are events. */
const without = (state: Open, numbers: ReadonlyArray<number>, events: number): Open => ({
  ...state,
  removed: state.removed + numbers.length,
  events: state.events - events,
  gone: include(state.gone, points(numbers), removedRangesMax)
})

/** How many removals fit one commit beside their signals. */
const removalsAtOnce = (
  state: { readonly fetched: number; registrations?: Open["registrations"] }
) => state.fetched > 0 || (state.registrations?.length ?? 0) > 0 ? removalsMax / 2 : removalsMax

/** The events of these removals; none without registrations. */
const eventsOf = (
  state: Open,
  removed: ReadonlyArray<Removal>,
  atMs: number
): ReadonlyArray<string> => {
  if (state.registrations.length === 0) return []
  const ids = removed.map(({ idRandom, n }) => notificationId(n, idRandom))
  const events: Array<string> = []
  for (let from = 0; from < ids.length; from += removalsPerEvent) {
    events.push(encodeRemoval(atMs, ids.slice(from, from + removalsPerEvent)))
  }
  return events
}

/** The state with `count` events appended; they count as retrieved, so that they expire too. */
const withEvents = (state: Open, count: number, atMs: number, context: DecisionContext): Open => {
  const { head, nowMs } = context
  const keptAtMs = nowMs + Math.max(0, eventRetentionMs - state.settings.retentionMs)
  return count === 0 ? state : {
    ...state,
    lastAtMs: atMs,
    events: state.events + count,
    retrieved: withRetrieval(state, { from: head + 1, to: head + count, atMs: keptAtMs })
  }
}

/** Items to remove: notifications, and events that have expired. */
interface RemovedItems {
  readonly removed: ReadonlyArray<Removal>
  readonly events: ReadonlyArray<number>
}

/** Removes items, records that as events, and sends the signals. */
export const removeItems = (
  state: Open,
  { events, removed }: RemovedItems,
  context: DecisionContext
): Decision<MailboxState> => {
  const { head, nowMs, self } = context
  const atMs = Math.max(nowMs, state.lastAtMs)
  const notifications = removed.map(({ n }) => n)
  const numbers = [...notifications, ...events]
  const appended = eventsOf(state, removed, atMs)
  const left = without(state, numbers, events.length)
  const next = withEvents(left, appended.length, atMs, context)
  const decision = become<MailboxState>(next).removeItems(...numbers).setTimer(nextTimerMs(next))
  for (const event of appended) decision.append(event)
  if (appended.length > 0) {
    signalRegistrations(decision, self, state.registrations, head + appended.length)
  }
  if (state.fetched > 0) signalBackgroundTasks(decision, self, notifications, "fetch")
  return decision
}

/** Records a retrieval, and signals the receipts of notifications that are retrieved first. */
export const recordRetrieval = (
  state: Open,
  { from, to }: Variant<MailboxMessage, "Retrieved">,
  { head, nowMs, self }: DecisionContext
): Decision<MailboxState, MailboxReply> => {
  // The ends exclude removed items. A gap within costs nothing and keeps the range whole.
  const present = subtract({ from: Math.max(from, 1), to: Math.min(to, head) }, state.gone)
  const low = present[0]
  const high = present.at(-1)
  if (low === undefined || high === undefined) return stay<MailboxState>().reply(done)
  const reports = state.settings.receipts === "retrieved"
  const unseen = reports ? present.flatMap((part) => subtract(part, state.retrieved)) : []
  // Notifications beyond the signals of one decision do not count as retrieved yet.
  const newly = first(unseen, retrievedPerDecisionMax)
  const last = total(unseen) > newly.length ? newly.at(-1) ?? high.to : high.to
  const ranges = withRetrieval(state, { from: low.from, to: last, atMs: nowMs })
  if (ranges === state.retrieved) return stay<MailboxState>().reply(done)
  const next: Open = { ...state, retrieved: ranges }
  const decision = become<MailboxState>(next).setTimer(nextTimerMs(next))
  signalBackgroundTasks(decision, self, newly, "retrieved")
  return decision.reply(done)
}

/** Removes expired notifications, as many as fit one commit; the timer continues. */
export const beginExpiry = (
  state: Open,
  _message: MailboxMessage,
  { nowMs, self }: DecisionContext
): Decision<MailboxState, never, MailboxAction> => {
  const passedMs = nowMs - state.settings.retentionMs
  const numbers: Array<number> = []
  const kept = state.retrieved.flatMap((range) => {
    if (range.atMs > passedMs) return [range]
    const present = subtract(range, state.gone)
    const expired = first(present, removalsAtOnce(state) - numbers.length)
    numbers.push(...expired)
    if (total(present) === expired.length) return []
    return [{ ...range, from: (expired.at(-1) ?? range.from - 1) + 1 }]
  })
  if (kept.length === state.retrieved.length && numbers.length === 0) {
    return stay<MailboxState>().setTimer(nextTimerMs(state))
  }
  if (numbers.length > 0 && (state.registrations.length > 0 || state.events > 0)) {
    return stay<MailboxState>()
      .perform<MailboxAction>({ _tag: "ReadExpired", numbers })
      .deferTimer(nowMs + expiryReadRetryMs)
  }
  const next = { ...without(state, numbers, 0), retrieved: kept }
  const decision = become<MailboxState>(next).removeItems(...numbers).setTimer(nextTimerMs(next))
  if (state.fetched > 0) signalBackgroundTasks(decision, self, numbers, "fetch")
  return decision
}

/** Removes expired items that were read, so that events can name them. It is idempotent. */
export const finishExpiry = (
  state: Open,
  { events, missing, removed }: Variant<MailboxMessage, "Expire">,
  context: DecisionContext
): Decision<MailboxState> => {
  const passedMs = context.nowMs - state.settings.retentionMs
  const passed = state.retrieved.filter(({ atMs }) => atMs <= passedMs)
  const isDue = (n: number): boolean => covers(passed, n) && !covers(state.gone, n)
  const seen = [...removed.map(({ n }) => n), ...events, ...missing]
  const ended = include(state.gone, points(seen), Number.POSITIVE_INFINITY)
  const kept = state.retrieved.flatMap((range) => {
    if (range.atMs > passedMs) return [range]
    const present = subtract(range, ended)
    const low = present[0]
    const high = present.at(-1)
    return low === undefined || high === undefined
      ? []
      : [{ from: low.from, to: high.to, atMs: range.atMs }]
  })
  const due: RemovedItems = {
    removed: removed.filter(({ n }) => isDue(n)),
    events: events.filter(isDue)
  }
  return removeItems({ ...state, retrieved: kept }, due, context)
}

/** Continues to remove the log of a destroyed mailbox. */
export const clearDestroyed = (
  state: Destroyed,
  { self }: DecisionContext
): Decision<MailboxState> => {
  const numbers = first(state.left, removalsAtOnce(state))
  const last = numbers.at(-1)
  if (last === undefined) return stay<MailboxState>().setTimer(null)
  const left = state.left.flatMap((range): Array<Range> =>
    range.to <= last ? [] : [{ from: Math.max(range.from, last + 1), to: range.to }]
  )
  const decision = become<MailboxState>({ ...state, left })
    .removeItems(...numbers)
    .setTimer(left.length === 0 ? null : state.destroyedAtMs)
  if (state.fetched > 0) signalBackgroundTasks(decision, self, numbers, "fetch")
  return decision
}
