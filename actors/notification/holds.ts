/**
 * Holds: what a pause keeps back of a notification (protocol §1.3).
 *
 * The outgoing mailbox has the pauses (actors/outgoing-mailbox). Each attempt asks for them before
 * it sends anything. An attempt that is paused is not made and does not count, so that the schedule
 * stands still. The notification stores the hold, once for all recipients that it concerns, and
 * then asks again whether the pause still stands: either that sees the end of the pause, or the end
 * of the pause comes later, and releases what it finds. After a crash between both, the hold ends
 * by itself after a while, and the next attempt asks again.
 */
import { holdContinuesMs, holdMaxMs, holdMinMs, pausedOriginsMax } from "../limits.ts"
import { parseUrl } from "../parse-url.ts"
import { hasEnded, type Queued } from "./attempts.ts"
import type { Hold, RecipientState, RunningAttempt } from "./protocol.ts"

/** The format of the cluster with which relays can be paused: older nodes would send them. */
export const pausesFormat = 3

/** Finds the hold that keeps back a relay to a URI; undefined if none does. */
type HoldFinder = (to: string) => Hold | undefined

/** Makes the finder once for many recipients: to compare origins, it parses each URI once. */
const finderOf = (holds: ReadonlyArray<Hold>): HoldFinder => {
  const all = holds.find(({ origin }) => origin === undefined)
  if (all !== undefined) return () => all
  const byOrigin = new Map(holds.map((hold) => [hold.origin, hold]))
  return byOrigin.size === 0 ? () => undefined : (to) => byOrigin.get(parseUrl(to)?.origin ?? "")
}

/** Finds the hold that keeps a recipient back now. */
export const activeHolds = ({ holds = [] }: Queued, nowMs: number): HoldFinder =>
  finderOf(holds.filter(({ untilMs }) => untilMs > nowMs))

/** Since when those of `shown` are held back that wait for nothing else, by their index in it. */
export const heldOf = (
  state: Queued,
  shown: ReadonlyArray<RecipientState>,
  nowMs: number
): Readonly<Record<number, number>> | undefined => {
  if (state.holds === undefined) return undefined
  const holdOf = activeHolds(state, nowMs)
  const held = shown.flatMap((one, at): ReadonlyArray<readonly [number, number]> => {
    if (hasEnded(one) || (one.nextAtMs ?? 0) > nowMs) return []
    const hold = holdOf(one.to)
    return hold === undefined ? [] : [[at, hold.atMs]]
  })
  return held.length === 0 ? undefined : Object.fromEntries(held)
}

/**
 * Finds the hold during which no attempt at a recipient can run, although the actor does not know
 * which run: none did when it was stored.
 */
export const quietHolds = ({ holds = [] }: Queued, nowMs: number): HoldFinder =>
  finderOf(holds.filter(({ isQuiet, untilMs }) => isQuiet === true && untilMs > nowMs))

/** When the first of the holds ends by itself. */
export const holdsEndMs = ({ holds = [] }: Queued, nowMs: number): number =>
  holds.reduce(
    (endMs, { untilMs }) => untilMs > nowMs ? Math.min(endMs, untilMs) : endMs,
    Number.POSITIVE_INFINITY
  )

/** The longer a pause has lasted, the later its end is asked for again. */
const nextUntilMs = (sinceMs: number, nowMs: number): number =>
  nowMs + Math.min(Math.max(nowMs - sinceMs, holdMinMs), holdMaxMs)

/** What a paused attempt changes. */
export interface HoldChange {
  readonly holds: ReadonlyArray<Hold>
  /** It must be stored, and whether the pause still stands be asked. */
  readonly isNew: boolean
  /** It must be stored: it is known now whether an attempt that it concerns may have been made. */
  readonly isSettled: boolean
  /** Readers see a hold that they did not see before. */
  readonly isShown: boolean
}

/**
 * Whether one of these attempts runs, of those that the hold concerns. A deferred one does not run,
 * but may have been made before a crash.
 */
const anyRuns = (
  hold: Hold,
  running: ReadonlyArray<RunningAttempt>,
  { recipients }: Queued
): boolean => {
  const holdOf = finderOf([hold])
  return running.some(({ deferred, mayRepeat, recipient }) => {
    const to = recipients[recipient]?.to
    const mayRun = deferred !== true || mayRepeat === true
    return mayRun && to !== undefined && holdOf(to) !== undefined
  })
}

/** The holds after a paused attempt; `running` are the attempts beside it. */
export const afterHeld = (
  state: Queued,
  { mayRepeat, origin, running }: {
    readonly origin: string | undefined
    readonly running: ReadonlyArray<RunningAttempt>
    /** It may have been made before a crash. */
    readonly mayRepeat: boolean
  },
  nowMs: number
): HoldChange => {
  const { holds = [] } = state
  const before = holds.find((hold) => hold.origin === origin)
  const isActive = before !== undefined && before.untilMs > nowMs
  // A hold that ended long ago is of an earlier pause.
  const continues = before !== undefined && nowMs < before.untilMs + holdContinuesMs
  const atMs = continues ? Math.min(before.atMs, nowMs) : nowMs
  const untilMs = isActive ? before.untilMs : nextUntilMs(atMs, nowMs)
  const hold: Hold = { ...origin === undefined ? {} : { origin }, atMs, untilMs }
  // After a hold has ended, attempts may have been made.
  const mayKnow = isActive || (continues && before.isQuiet === false)
  const wasQuiet = mayKnow ? before.isQuiet : undefined
  const isQuiet = wasQuiet ??
    (mayRepeat ? false : anyRuns(hold, running, state) ? undefined : true)
  const others = holds.filter((other) => other !== before).slice(-pausedOriginsMax)
  return {
    holds: [...others, { ...hold, ...isQuiet === undefined ? {} : { isQuiet } }],
    isNew: !isActive,
    isSettled: isQuiet !== before?.isQuiet,
    isShown: !continues
  }
}

/** The state without holds. */
export const withoutHolds = (state: Queued): Queued => {
  const { holds: _, ...free } = state
  return free
}

/** Whether there is something that a release would begin. */
export const mayRelease = ({ endedAtMs, holds }: Queued): boolean =>
  holds !== undefined && endedAtMs === undefined
