/**
 * Every bound of the runtime, with the relations between them asserted at start. Units stand
 * last in the names.
 */

export interface Limits {
  /** Messages that one actor may hold without having replied; one more is refused. */
  readonly actorQueueMax: number
  /** Actors kept in memory; above it the least recently used idle ones are put to sleep. */
  readonly residentActorsMax: number
  /** Actors in memory at most, busy ones too; a message for one more is refused. */
  readonly activeActorsMax: number
  /** Actors looked at, at most, to make room for one more. */
  readonly evictionLooksMax: number
  /** An actor without a message for so long is put to sleep. */
  readonly idleMs: number
  /** How often idle actors are looked for. */
  readonly sweepMs: number
  /** Commits in one group, and groups under way at once. */
  readonly groupCommitsMax: number
  readonly groupsInFlightMax: number
  /** Appended items that one actor's commit may hold; what is more waits for the next. */
  readonly commitItemsMax: number
  /** How often a message is decided anew after a conflict or a failed write. */
  readonly redecideMax: number
  /** Wait before loading again from a store that failed. */
  readonly reloadDelayMs: number
  /** A call of the store that was not answered for so long is given up. */
  readonly storageDeadlineMs: number
  /** Backoff between the restarts of an actor: first and longest. */
  readonly restartDelayMs: number
  readonly restartDelayMaxMs: number
  /** So many restarts within the window quarantine an actor. */
  readonly restartsMax: number
  readonly restartWindowMs: number
  /** How long a quarantine lasts unless it is lifted, and what callers are told to wait. */
  readonly quarantineMs: number
  readonly quarantineRetryMs: number
  /** What an overloaded actor tells its callers to wait. */
  readonly overloadRetryMs: number
  /** Wake-ups fire on a grid of so many ms. */
  readonly timerResolutionMs: number
  /** The longest sleep of the timer: how late a clock that jumps is noticed. */
  readonly timerSleepMaxMs: number
  /**
   * Wake-ups of one shard that are read into memory at once, those that come first: a shard has
   * up to twice as many there, beside those that are held or tried again.
   */
  readonly shardWakesMax: number
  /** Shards whose wake-ups are read at the same time. */
  readonly shardLoadsMax: number
  /**
   * How often the store is looked at for wake-ups of a shard that nobody here knows of: a commit
   * that was given up may be kept long after.
   */
  readonly wakesLookMs: number
  /** The same after a commit was given up, or its owner died; and how often it is looked then. */
  readonly wakesDoubtLookMs: number
  readonly wakesDoubtLooks: number
  /** Wake-ups under delivery at once: delivered, and not yet answered. */
  readonly wakesInFlightMax: number
  /**
   * Wake-ups that cannot be delivered just now, on all shards: above it no more are read from
   * the store until some of them can.
   */
  readonly wakesStuckMax: number
  /** Wake-ups delivered at once; those left over are delivered a grid later. */
  readonly wakeBatchMax: number
  /** A wake-up that could not be delivered is tried again after so long. */
  readonly wakeRetryMs: number
  /** How long an ask of another node waits. */
  readonly askDeadlineMs: number
  /** How soon an ask that no node took is tried again, the first time and at the longest. */
  readonly movingDelayMs: number
  readonly movingDelayMaxMs: number
  /** Asks that wait for their shards to be served; one more fails. */
  readonly movingAsksMax: number
  /** How long a shard that is given up waits for the messages it has taken. */
  readonly handoffMs: number
  /** How long a drain waits for commits and effects under way. */
  readonly drainMs: number
}

export const defaultLimits: Limits = {
  actorQueueMax: 10_000,
  residentActorsMax: 10_000,
  activeActorsMax: 50_000,
  evictionLooksMax: 64,
  idleMs: 60_000,
  sweepMs: 5_000,
  groupCommitsMax: 500,
  groupsInFlightMax: 1,
  commitItemsMax: 1_000,
  redecideMax: 3,
  reloadDelayMs: 50,
  storageDeadlineMs: 10_000,
  restartDelayMs: 10,
  restartDelayMaxMs: 10_000,
  restartsMax: 5,
  restartWindowMs: 60_000,
  quarantineMs: 600_000,
  quarantineRetryMs: 60_000,
  overloadRetryMs: 1_000,
  timerResolutionMs: 10,
  timerSleepMaxMs: 1_000,
  shardWakesMax: 512,
  shardLoadsMax: 4,
  wakesLookMs: 600_000,
  wakesDoubtLookMs: 30_000,
  wakesDoubtLooks: 4,
  wakesInFlightMax: 256,
  wakesStuckMax: 100_000,
  wakeBatchMax: 128,
  wakeRetryMs: 1_000,
  askDeadlineMs: 10_000,
  movingDelayMs: 10,
  movingDelayMaxMs: 250,
  movingAsksMax: 10_000,
  handoffMs: 15_000,
  drainMs: 20_000
}

const relations: ReadonlyArray<readonly [string, (limits: Limits) => boolean]> = [
  ["every limit is at least 1", (l) => Object.values(l).every((value) => value >= 1)],
  ["restartDelayMs <= restartDelayMaxMs", (l) => l.restartDelayMs <= l.restartDelayMaxMs],
  ["quarantineRetryMs <= quarantineMs", (l) => l.quarantineRetryMs <= l.quarantineMs],
  ["restartDelayMaxMs <= restartWindowMs", (l) => l.restartDelayMaxMs <= l.restartWindowMs],
  ["timerResolutionMs <= timerSleepMaxMs", (l) => l.timerResolutionMs <= l.timerSleepMaxMs],
  ["residentActorsMax <= activeActorsMax", (l) => l.residentActorsMax <= l.activeActorsMax],
  ["reloadDelayMs <= storageDeadlineMs", (l) => l.reloadDelayMs <= l.storageDeadlineMs],
  ["movingDelayMs <= movingDelayMaxMs", (l) => l.movingDelayMs <= l.movingDelayMaxMs],
  ["wakesDoubtLookMs <= wakesLookMs", (l) => l.wakesDoubtLookMs <= l.wakesLookMs],
  ["sweepMs <= idleMs", (l) => l.sweepMs <= l.idleMs]
]

/** The defaults with these changes; a relation that does not hold is a defect at start. */
export const makeLimits = (changes: Partial<Limits> = {}): Limits => {
  const limits = { ...defaultLimits, ...changes }
  for (const [relation, holds] of relations) {
    if (!holds(limits)) throw new RangeError(`limits: ${relation} does not hold`)
  }
  return limits
}
