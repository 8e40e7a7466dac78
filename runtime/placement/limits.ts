/** Every bound of placement, with the relations between them. Units stand last in the names. */

export interface PlacementLimits {
  /** A node's membership ends so long after it was last refreshed. */
  readonly ttlMs: number
  /** How often it is refreshed. */
  readonly refreshMs: number
  /**
   * A node that could not refresh stops serving so long before its membership can end; that is
   * how long a commit that it sent before may be under way.
   */
  readonly marginMs: number
  /** A refresh that was not answered for so long is tried again. */
  readonly refreshDeadlineMs: number
  /** Any other call of the registry that was not answered for so long is given up. */
  readonly callDeadlineMs: number
  /** Wait after a call that failed. */
  readonly retryMs: number
  /** A node that enters gives up after so many calls that failed. */
  readonly enteringFailuresMax: number
  /** Claims that are taken or released at the same time. */
  readonly callsMax: number
  /** Shards that are drained at the same time, so that the others are served meanwhile. */
  readonly drainsMax: number
  /** A member that was not seen to refresh for so long does not count, whatever was told. */
  readonly silentMs: number
  /** How long a node that leaves waits for others to have taken its shards. */
  readonly takenMs: number
}

export const defaultPlacementLimits: PlacementLimits = {
  ttlMs: 13_000,
  refreshMs: 1_000,
  marginMs: 3_000,
  refreshDeadlineMs: 2_000,
  callDeadlineMs: 5_000,
  retryMs: 500,
  enteringFailuresMax: 5,
  callsMax: 64,
  drainsMax: 64,
  silentMs: 30_000,
  takenMs: 5_000
}

const placementRelations: ReadonlyArray<readonly [string, (limits: PlacementLimits) => boolean]> = [
  ["every limit is at least 1", (l) => Object.values(l).every((value) => value >= 1)],
  // Two refreshes may fail before the node stops serving. A registry without a leader, as NATS has
  // it for 4 to 9 s, stops nobody: `ttlMs - marginMs - refreshMs` are left at the least.
  [
    "refreshMs + 2 (refreshDeadlineMs + retryMs) <= ttlMs - marginMs",
    (l) => l.refreshMs + 2 * (l.refreshDeadlineMs + l.retryMs) <= l.ttlMs - l.marginMs
  ],
  ["ttlMs <= silentMs", (l) => l.ttlMs <= l.silentMs]
]

/** The defaults with these changes; a relation that does not hold is a defect at start. */
export const makePlacementLimits = (changes: Partial<PlacementLimits> = {}): PlacementLimits => {
  const limits = { ...defaultPlacementLimits, ...changes }
  for (const [relation, holds] of placementRelations) {
    if (!holds(limits)) throw new RangeError(`placement limits: ${relation} does not hold`)
  }
  return limits
}
