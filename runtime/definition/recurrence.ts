/**
 * When the timer of an actor is due, and what becomes of the ticks of a recurring timer that nobody
 * could process. Pure functions of a stored timer and the time.
 */

/** What happens to missed ticks; see {@link IntervalOptions} of a decision. */
export type MissedTicks = "skip" | "once" | "all"

/** How exactly timers fire, ms: no interval is shorter. */
export const resolutionMs = 10

/** How late a tick may be that `skip` still delivers, ms; less than one interval. */
const lateDefaultMs = 60_000

/** A recurring timer, as it is stored with the actor's state. */
export interface StoredInterval {
  readonly everyMs: number
  readonly missed: MissedTicks
  readonly lateMs: number
  /** Ticks that were not delivered since the last one that was. */
  readonly passed: number
}

/** The actor's timer, as it is stored with its state. */
export interface ActorTimer {
  /** ms since the epoch. */
  readonly atMs: number
  /** Undefined for a timer that fires once. */
  readonly interval?: StoredInterval
}

/** A tick that an actor receives. */
export interface Tick {
  /** When it was due, ms since the epoch. */
  readonly dueMs: number
  /** How many ticks before it were not delivered. */
  readonly missed: number
}

/** A due timer: its tick, unless that is skipped, and the timer that follows it. */
export interface DueTimer {
  readonly tick: Tick | undefined
  readonly next: ActorTimer | undefined
}

/** A new interval. */
export const intervalOf = (everyMs: number, missed: MissedTicks, lateMs?: number) => ({
  everyMs,
  missed,
  lateMs: Math.min(lateMs ?? lateDefaultMs, everyMs),
  passed: 0
})

/** What a timer does that is due: `nowMs >= timer.atMs`. */
export const dueTimer = ({ atMs, interval }: ActorTimer, nowMs: number): DueTimer => {
  if (interval === undefined) return { tick: { dueMs: atMs, missed: 0 }, next: undefined }
  const { everyMs, lateMs, missed, passed } = interval
  const after = (dueMs: number, passed = 0): ActorTimer => ({
    atMs: dueMs + everyMs,
    interval: { ...interval, passed }
  })
  if (missed === "all") return { tick: { dueMs: atMs, missed: passed }, next: after(atMs) }
  // The ticks after the first one that are due too: the last of them is the current one.
  const overdue = Math.floor((nowMs - atMs) / everyMs)
  const dueMs = atMs + overdue * everyMs
  if (missed === "skip" && nowMs - dueMs > lateMs) {
    return { tick: undefined, next: after(dueMs, passed + overdue + 1) }
  }
  return { tick: { dueMs, missed: passed + overdue }, next: after(dueMs) }
}
