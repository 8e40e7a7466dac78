/**
 * The removal of notifications: by a reader, by a follow-up of their sender, when their retention
 * after retrieval has passed, or with the mailbox. While there are registrations, a removal event
 * in the log records it. Pure.
 */
import { become, type Decision, type DecisionContext, stay,
  type Variant } from "../../runtime/index.ts"
import { eventRetentionMs, expiryReadRetryMs, removalsMax, removalsPerEvent,
  removedLocalDeliveriesMax, removedLocalDeliveryRetentionMs, removedRangesMax, retentionSteps,
  retrievedPerDecisionMax, retrievedRangesMax } from "../limits.ts"
import { encodeItem, encodeRemoval, mayBeLocalDelivery, notificationId, parseNotificationId,
  repeatKey } from "./log-item.ts"
import type { MailboxAction, MailboxMessage, MailboxReply, MailboxState,
  Removal } from "./protocol.ts"
import { covers, first, include, type Range, type Retrieval, retrieve, subtract,
  total } from "./ranges.ts"
import type { WaitingCount } from "./waiting-bytes.ts"
import { isWatched, signalBackgroundTasks, signalDeposit, signalRegistrations,
  signalRemoval } from "./signals.ts"

type Open = Variant<MailboxState, "Open">

type Destroyed = Variant<MailboxState, "Destroyed">

const done: MailboxReply = { _tag: "Done" }

/** When the retention of the item that was retrieved first ends; null if none was retrieved. */
export const nextTimerMs = (state: Open): number | null => {
  if (state.retrieved.length === 0) return null
  return Math.min(...state.retrieved.map(({ atMs }) => atMs)) + state.settings.retentionMs
}

/**
 * Whether `gone` lacks removed items, because of its bound. Then an item that it does not have may
 * have been removed, too.
 */
export const hasForgottenRemovals = ({ gone, removed }: Open): boolean => total(gone) < removed

/** Each number as a range of one. */
const singleRanges = (numbers: ReadonlyArray<number>): ReadonlyArray<Range> =>
  numbers.map((n) => ({ from: n, to: n }))

/** The retrievals of the state, and one more. */
const withRetrieval = (state: Open, whole: Retrieval): ReadonlyArray<Retrieval> => {
  const stepMs = Math.max(1, Math.ceil(state.settings.retentionMs / retentionSteps))
  return retrieve(state.retrieved, whole, stepMs, retrievedRangesMax)
}

/** The numbers whose items wait no longer. */
interface Ended {
  readonly gone: ReadonlyArray<Range>
  readonly retrieved: ReadonlyArray<Range>
}

const hasEnded = (part: Range, { gone, retrieved }: Ended): boolean =>
  subtract(part, retrieved).every((rest) => subtract(rest, gone).length === 0)

/** The count of what waits after a retrieval or removal of numbers within `changed`. */
const releaseWaiting = (
  waiting: WaitingCount,
  ended: Ended,
  changed: Range
): WaitingCount => {
  if (waiting.partsBytes + waiting.bytes === 0) return waiting
  const isFree = (part: Range): boolean =>
    part.from <= changed.to && part.to >= changed.from && hasEnded(part, ended)
  const parts = waiting.parts.filter((part) => !isFree(part))
  const isOpenFree = waiting.from > 0 && isFree({ from: waiting.from, to: waiting.upTo })
  if (parts.length === waiting.parts.length && !isOpenFree) return waiting
  return {
    ...waiting,
    parts,
    partsBytes: parts.reduce((total, { bytes }) => total + bytes, 0),
    ...isOpenFree ? { from: 0, bytes: 0 } : {}
  }
}

/** The state after the removal of these items, of which `events` are removal events. */
const withoutItems = (state: Open, numbers: ReadonlyArray<number>, events: number): Open => {
  const gone = include(state.gone, singleRanges(numbers), removedRangesMax)
  const { retrieved, waiting } = state
  const changed = { from: Math.min(...numbers), to: Math.max(...numbers) }
  return {
    ...state,
    removed: state.removed + numbers.length,
    events: state.events - events,
    gone,
    waiting: releaseWaiting(waiting, { gone, retrieved }, changed)
  }
}

/**
 * The state that remembers the local deliveries among these. The sender repeats one whose outcome
 * is indeterminate, and the log does not show that it was stored.
 */
export const rememberLocalDeliveries = (
  state: Open,
  removed: ReadonlyArray<Removal>,
  nowMs: number
): Open => {
  const sinceMs = nowMs - removedLocalDeliveryRetentionMs
  const known = state.removedLocalDeliveries.filter(({ atMs }) => atMs > sinceMs)
  const added = removed.flatMap(({ idRandom, n }) =>
    mayBeLocalDelivery(idRandom) ? [{ id: notificationId(n, idRandom), atMs: nowMs }] : []
  )
  return {
    ...state,
    removedLocalDeliveries: [...known, ...added].slice(-removedLocalDeliveriesMax)
  }
}

/** The number of a removed local delivery; undefined if it is not remembered. */
export const findRemovedLocalDelivery = (
  { removedLocalDeliveries }: Open,
  idRandom: string,
  nowMs: number
): number | undefined => {
  if (removedLocalDeliveries.length === 0 || !mayBeLocalDelivery(idRandom)) return undefined
  const found = removedLocalDeliveries.find(({ atMs, id }) =>
    id.endsWith(`-${idRandom}`) && nowMs < atMs + removedLocalDeliveryRetentionMs
  )
  return found && parseNotificationId(found.id)?.n
}

/** Whether a local delivery may expire so early that it may still be repeated. */
const expiresEarly = ({ settings }: Open): boolean =>
  settings.retentionMs < removedLocalDeliveryRetentionMs

/** How many items one commit can remove. If it also sends signals, it can remove fewer. */
const removalsPerCommit = (
  { fetched, inlined, registrations = [] }: Pick<Destroyed, "fetched" | "inlined"> & {
    readonly registrations?: Open["registrations"]
  }
): number => {
  const kinds = (fetched > 0 || registrations.length > 0 ? 1 : 0) + (inlined > 0 ? 1 : 0)
  return Math.floor(removalsMax / (1 + kinds))
}

/** The removal events for these notifications, as log items; none without registrations. */
const encodeRemovalEvents = (
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

/** The state after `count` removal events. They count as retrieved, so that they expire too. */
const withEvents = (state: Open, count: number, atMs: number, context: DecisionContext): Open => {
  const { head, nowMs } = context
  // An event is kept for eventRetentionMs at least: a short retention begins that much later.
  const retrievedAtMs = nowMs + Math.max(0, eventRetentionMs - state.settings.retentionMs)
  return count === 0 ? state : {
    ...state,
    lastAtMs: atMs,
    events: state.events + count,
    retrieved: withRetrieval(state, { from: head + 1, to: head + count, atMs: retrievedAtMs })
  }
}

/** Items to remove: notifications, and the numbers of removal events that have expired. */
interface RemovedItems {
  readonly removed: ReadonlyArray<Removal>
  readonly events: ReadonlyArray<number>
}

/** Removes items, appends the removal events, and sends the signals. */
export const removeItems = (
  state: Open,
  { events, removed }: RemovedItems,
  context: DecisionContext
): Decision<MailboxState> => {
  const { head, nowMs, self } = context
  const atMs = Math.max(nowMs, state.lastAtMs)
  const notifications = removed.map(({ n }) => n)
  const numbers = [...notifications, ...events]
  const appended = encodeRemovalEvents(state, removed, atMs)
  const remaining = withoutItems(state, numbers, events.length)
  const next = withEvents(remaining, appended.length, atMs, context)
  const decision = become<MailboxState>(next).removeItems(...numbers).setTimer(nextTimerMs(next))
  for (const event of appended) decision.append(event)
  if (appended.length > 0) {
    signalRegistrations(decision, self, state.registrations, head + appended.length)
  }
  signalRemoval(decision, state, self, notifications)
  return decision
}

/**
 * Stores a follow-up, and in the same commit removes what it replaces. The new item is unread and
 * not retrieved, whatever the other one was: its readers have not seen it. Everybody who follows
 * the log sees it, as any notification, and it names the other one.
 */
export const storeFollowUp = (
  state: Open,
  { account, digest, fragment, idRandom, isWithdrawal, replaced }: Variant<
    MailboxMessage,
    "Replace"
  >,
  context: DecisionContext
): Decision<MailboxState, MailboxReply> => {
  const { head, nowMs, self } = context
  const atMs = Math.max(nowMs, state.lastAtMs)
  const removed = replaced === undefined ? [] : [replaced]
  const numbers = removed.map((one) => one.n)
  const events = encodeRemovalEvents(state, removed, atMs)
  const remaining = numbers.length === 0 ? state : withoutItems(state, numbers, 0)
  const next: Open = { ...withEvents(remaining, events.length, atMs, context), lastAtMs: atMs }
  const n = head + events.length + 1
  const decision = become<MailboxState>(next).setTimer(nextTimerMs(next))
  if (numbers.length > 0) decision.removeItems(...numbers)
  for (const event of events) decision.append(event)
  const item = encodeItem(atMs, idRandom, digest, fragment, { account })
  decision.append(item, repeatKey(digest))
  // Of a withdrawal there is nothing to fetch, and nothing to confirm.
  if (isWithdrawal) signalRegistrations(decision, self, next.registrations, n)
  else if (isWatched(next)) signalDeposit(decision, next, self, n)
  signalRemoval(decision, state, self, numbers)
  return decision.reply<MailboxReply>({ _tag: "Deposited", n, repeated: false, idRandom })
}

/**
 * Records a retrieval. For each notification that was not retrieved before, signals the background
 * task that sends the receipt, if the mailbox sends receipts on retrieval.
 */
export const recordRetrieval = (
  state: Open,
  { from, to }: Variant<MailboxMessage, "Retrieved">,
  { head, nowMs, self }: DecisionContext
): Decision<MailboxState, MailboxReply> => {
  // The range begins and ends with an item that is not removed. Removed items inside it do no
  // harm, and one range takes less space than several.
  const present = subtract({ from: Math.max(from, 1), to: Math.min(to, head) }, state.gone)
  const low = present[0]
  const high = present.at(-1)
  if (low === undefined || high === undefined) return stay<MailboxState>().reply(done)
  const sendsReceipts = state.settings.receipts === "retrieved"
  const unretrieved = sendsReceipts
    ? present.flatMap((part) => subtract(part, state.retrieved))
    : []
  // One decision sends a bounded number of signals. The notifications after the last signaled one
  // do not count as retrieved yet.
  const signaled = first(unretrieved, retrievedPerDecisionMax)
  const last = total(unretrieved) > signaled.length ? signaled.at(-1) ?? high.to : high.to
  const ranges = withRetrieval(state, { from: low.from, to: last, atMs: nowMs })
  if (ranges === state.retrieved) return stay<MailboxState>().reply(done)
  const ended = { gone: state.gone, retrieved: ranges }
  const waiting = releaseWaiting(state.waiting, ended, { from: low.from, to: last })
  const next: Open = { ...state, retrieved: ranges, waiting }
  const decision = become<MailboxState>(next).setTimer(nextTimerMs(next))
  signalBackgroundTasks(decision, self, signaled, "retrieved")
  return decision.reply(done)
}

/**
 * Removes expired items, as many as one commit can; the timer fires again for the others. If
 * removal events may be among them or must name them, or a relay among them may be repeated, the
 * items are read first, and {@link finishExpiry} removes them. So are they if some may be removed
 * already: each removal counts once.
 */
export const beginExpiry = (
  state: Open,
  _message: MailboxMessage,
  { nowMs, self }: DecisionContext
): Decision<MailboxState, never, MailboxAction> => {
  const expiredBeforeMs = nowMs - state.settings.retentionMs
  const numbers: Array<number> = []
  const kept = state.retrieved.flatMap((range) => {
    if (range.atMs > expiredBeforeMs) return [range]
    const present = subtract(range, state.gone)
    const expired = first(present, removalsPerCommit(state) - numbers.length)
    numbers.push(...expired)
    if (total(present) === expired.length) return []
    return [{ ...range, from: (expired.at(-1) ?? range.from - 1) + 1 }]
  })
  if (kept.length === state.retrieved.length && numbers.length === 0) {
    return stay<MailboxState>().setTimer(nextTimerMs(state))
  }
  const hasEvents = state.registrations.length > 0 || state.events > 0
  const mustRead = hasEvents || expiresEarly(state) || hasForgottenRemovals(state)
  if (numbers.length > 0 && mustRead) {
    return stay<MailboxState>()
      .perform<MailboxAction>({ _tag: "ReadExpired", numbers })
      .deferTimer(nowMs + expiryReadRetryMs)
  }
  const next = { ...withoutItems(state, numbers, 0), retrieved: kept }
  const decision = become<MailboxState>(next).removeItems(...numbers).setTimer(nextTimerMs(next))
  signalRemoval(decision, state, self, numbers)
  return decision
}

/** Removes expired items that were read for {@link beginExpiry}. It is idempotent. */
export const finishExpiry = (
  state: Open,
  { events, missing, removed }: Variant<MailboxMessage, "Expire">,
  context: DecisionContext
): Decision<MailboxState> => {
  const expiredBeforeMs = context.nowMs - state.settings.retentionMs
  const passed = state.retrieved.filter(({ atMs }) => atMs <= expiredBeforeMs)
  const isDue = (n: number): boolean => covers(passed, n) && !covers(state.gone, n)
  const read = [...removed.map(({ n }) => n), ...events, ...missing]
  const ended = include(state.gone, singleRanges(read), Number.POSITIVE_INFINITY)
  const kept = state.retrieved.flatMap((range) => {
    if (range.atMs > expiredBeforeMs) return [range]
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
  const next: Open = { ...state, retrieved: kept }
  const remembering = expiresEarly(state)
    ? rememberLocalDeliveries(next, due.removed, context.nowMs)
    : next
  return removeItems(remembering, due, context)
}

/** Removes items of a destroyed mailbox, as many as one commit can; the timer continues. */
export const clearDestroyed = (
  state: Destroyed,
  { self }: DecisionContext
): Decision<MailboxState> => {
  const numbers = first(state.left, removalsPerCommit(state))
  const last = numbers.at(-1)
  if (last === undefined) return stay<MailboxState>().setTimer(null)
  const left = state.left.flatMap((range): Array<Range> =>
    range.to <= last ? [] : [{ from: Math.max(range.from, last + 1), to: range.to }]
  )
  const decision = become<MailboxState>({ ...state, left })
    .removeItems(...numbers)
    .setTimer(left.length === 0 ? null : state.destroyedAtMs)
  signalRemoval(decision, state, self, numbers)
  return decision
}
