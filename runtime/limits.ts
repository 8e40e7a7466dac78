/** Every bound of the NATS backend. Units stand last in the names. */
/**
 * Every bound of the runtime, with the relations between them asserted at start. Units stand
 * last in the names.
 */

export interface Limits {
  /** Messages without a reply in one actor's inbox; one more is refused. */
  readonly inboxMax: number
  /** Actors in memory; above it the least recently used idle ones are passivated. */
  readonly residentActorsMax: number
  /** Actors in memory at most, busy ones too; a message for one more is refused. */
  readonly activeActorsMax: number
  /** Actors that are checked, at most, to make room for one more. */
  readonly evictionChecksMax: number
  /** An actor without a message for so long is passivated. */
  readonly idleMs: number
  /** How often idle actors are passivated. */
  readonly sweepMs: number
  /** Commits in one group, and groups under way at once. */
  readonly groupCommitsMax: number
  readonly groupsInFlightMax: number
  /** Appended items in one actor's commit; further ones wait for the next commit. */
  readonly commitItemsMax: number
  /** How often a message is decided, after conflicts and failed writes too. */
  readonly decisionAttemptsMax: number
  /** Wait before loading again from a store that failed. */
  readonly reloadDelayMs: number
  /** A call of the store without an answer for so long is given up. */
  readonly storageDeadlineMs: number
  /** Backoff between the restarts of an actor: first and longest. */
  readonly restartDelayMs: number
  readonly restartDelayMaxMs: number
  /** So many restarts within the window quarantine an actor. */
  readonly restartsMax: number
  readonly restartWindowMs: number
  /** How long a quarantine lasts unless it is lifted, and how long callers should wait. */
  readonly quarantineMs: number
  readonly quarantineRetryMs: number
  /** How long the callers of an overloaded actor should wait. */
  readonly overloadRetryMs: number
  /** Timers fire on a grid of so many ms. */
  readonly timerResolutionMs: number
  /** The longest sleep of the timer: how late a clock that jumps is noticed. */
  readonly timerSleepMaxMs: number
  /**
   * Timers of one shard that are read into memory at once, those that come first: a shard has
   * up to twice as many there, beside those that are held or tried again.
   */
  readonly shardTimersMax: number
  /** Shards whose timers are read at the same time. */
  readonly shardLoadsMax: number
  /**
   * How often the timers of a shard are read from the store again: a commit that was given up may
   * be kept long after.
   */
  readonly timersRescanMs: number
  /** The same after an indeterminate commit or the death of an owner; and how many times. */
  readonly timersDoubtRescanMs: number
  readonly timersDoubtRescans: number
  /** Timers in delivery at once: delivered, and not yet answered. */
  readonly timersInFlightMax: number
  /**
   * Timers that cannot be delivered just now, on all shards: above it no more are read from
   * the store until some of them can.
   */
  readonly timersStuckMax: number
  /** Timers delivered at once; those left over are delivered a grid later. */
  readonly timerBatchMax: number
  /** A timer that could not be delivered is delivered again after so long. */
  readonly timerRetryMs: number
  /** How long an ask of another node waits. */
  readonly askDeadlineMs: number
  /** How soon an ask that no node accepted is repeated, the first time and at the longest. */
  readonly unownedRetryMs: number
  readonly unownedRetryMaxMs: number
  /** Asks that wait for their shards to be owned; one more fails. */
  readonly unownedAsksMax: number
  /** How long a released shard waits for the messages that it has accepted. */
  readonly handoffMs: number
  /** How long a drain waits for commits and effects under way. */
  readonly drainMs: number
}

export const defaultLimits: Limits = {
  inboxMax: 10_000,
  residentActorsMax: 10_000,
  activeActorsMax: 50_000,
  evictionChecksMax: 64,
  idleMs: 60_000,
  sweepMs: 5_000,
  groupCommitsMax: 500,
  groupsInFlightMax: 1,
  commitItemsMax: 1_000,
  decisionAttemptsMax: 3,
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
  shardTimersMax: 512,
  shardLoadsMax: 4,
  timersRescanMs: 600_000,
  timersDoubtRescanMs: 30_000,
  timersDoubtRescans: 4,
  timersInFlightMax: 256,
  timersStuckMax: 100_000,
  timerBatchMax: 128,
  timerRetryMs: 1_000,
  askDeadlineMs: 10_000,
  unownedRetryMs: 10,
  unownedRetryMaxMs: 250,
  unownedAsksMax: 10_000,
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
  ["unownedRetryMs <= unownedRetryMaxMs", (l) => l.unownedRetryMs <= l.unownedRetryMaxMs],
  ["timersDoubtRescanMs <= timersRescanMs", (l) => l.timersDoubtRescanMs <= l.timersRescanMs],
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
  readonly joinFailuresMax: number
  /** Claims that are taken or released at the same time. */
  readonly callsMax: number
  /** Shards that are drained at the same time, so that the others are served meanwhile. */
  readonly drainsMax: number
  /** A member that was not seen to refresh for so long does not count, whatever was told. */
  readonly memberSilentMs: number
  /** How long a node that leaves waits for others to have taken its shards. */
  readonly takeoverMs: number
}

export const defaultPlacementLimits: PlacementLimits = {
  ttlMs: 13_000,
  refreshMs: 1_000,
  marginMs: 3_000,
  refreshDeadlineMs: 2_000,
  callDeadlineMs: 5_000,
  retryMs: 500,
  joinFailuresMax: 5,
  callsMax: 64,
  drainsMax: 64,
  memberSilentMs: 30_000,
  takeoverMs: 5_000
}

const placementRelations: ReadonlyArray<readonly [string, (limits: PlacementLimits) => boolean]> = [
  ["every limit is at least 1", (l) => Object.values(l).every((value) => value >= 1)],
  // Two refreshes may fail before the node stops serving. A registry without a leader, as NATS has
  // it for 4 to 9 s, stops nobody: `ttlMs - marginMs - refreshMs` are left at the least.
  [
    "refreshMs + 2 (refreshDeadlineMs + retryMs) <= ttlMs - marginMs",
    (l) => l.refreshMs + 2 * (l.refreshDeadlineMs + l.retryMs) <= l.ttlMs - l.marginMs
  ],
  ["ttlMs <= silentMs", (l) => l.ttlMs <= l.memberSilentMs]
]

/** The defaults with these changes; a relation that does not hold is a defect at start. */
export const makePlacementLimits = (changes: Partial<PlacementLimits> = {}): PlacementLimits => {
  const limits = { ...defaultPlacementLimits, ...changes }
  for (const [relation, holds] of placementRelations) {
    if (!holds(limits)) throw new RangeError(`placement limits: ${relation} does not hold`)
  }
  return limits
}

/* The embedded store. */

/** Content up to this many bytes is stored in the database, larger content in a file. */
export const inlineBlobBytesMax = 64 * 1024

/** Bytes of one read of a blob's file. */
export const embeddedBlobChunkBytes = 128 * 1024

/** An opened blob that nobody begins to read is closed after this time. */
export const blobUnreadMs = 30_000

/** No further job joins a group that has reached this many bytes. */
export const groupBytesMax = 4 * 1024 * 1024

/** Initial bytes of the buffer that the writer thread shares; it grows for larger groups. */
export const sharedBytes = 2 * groupBytesMax

/** Greatest number of changes in one write of records. */
export const recordChangesMax = 20_000

/** Actors whose fences are cached, so that their next commit needs no read. */
export const cachedFencesMax = 20_000

/** Bytes of table blocks in memory. */
export const blockCacheBytes = 16 * 1024 * 1024

/** RocksDB keeps up to 1.5 times this many bytes of recent writes in memory. */
export const memtableBytes = 64 * 1024 * 1024

/** The same for a view of a cluster's records, whose writes are not flushed. */
export const viewMemtableBytes = 16 * 1024 * 1024

/** Characters of the cached results of record reads, and of one result. */
export const cachedCharsMax = 2 * 1024 * 1024

export const cachedResultCharsMax = 128 * 1024

/** Bytes of one read when RocksDB's logs are checked; whole blocks of 32 KiB. */
export const rocksdbLogReadBytes = 1024 * 1024

/** LevelDB writes a table when its log has this many bytes; it keeps two logs. */
export const leveldbBufferBytes = 16 * 1024 * 1024

/** Bytes after which LevelDB begins the next table. */
export const leveldbTableBytes = 8 * 1024 * 1024

/** Rows, and about the bytes, of one read of LevelDB's iterator. */
export const leveldbChunkRows = 1_000

export const leveldbChunkBytes = 256 * 1024

/** A longer read continues in the next turn of the event loop. */
export const readSliceMs = 5

/** Timers that are read in one step. */
export const timersPerStep = 500

/** Rows of one page when an archive reads all of the store. */
export const contentsPage = 200

/** An archive reads logs with fewer items together with their actors. */
export const contentsItems = 32

/** Log items of a removed actor that the sweeper deletes in one step. */
export const sweepItems = 500

/** How often the count of acknowledged commits is flushed. */
export const acknowledgedSyncMs = 1_000

/** First and longest pause between attempts to reopen the database after a failed write. */
export const recoverFirstMs = 100

export const recoverLastMs = 5_000

/** Free bytes, beside the size of the write-ahead logs, that reopening needs after a full disk. */
export const recoverFreeBytesMin = 4 * 1024 * 1024

/** Bytes that the store writes and flushes to probe a disk. */
export const probeBytes = 4 * 1024

if (inlineBlobBytesMax >= groupBytesMax || groupBytesMax > sharedBytes) {
  throw new Error("runtime/limits.ts: the limits contradict each other")
}

/** How long one attempt to connect may take. */
export const connectTimeoutMs = 5_000

/** Wait between two attempts to connect to the same server. */
export const reconnectWaitMs = 250

/** How long a node's first message to itself may take; another one is sent every `RIGHT_MS`. */
export const permissionCheckMs = 20_000

export const permissionCheckAttemptMs = 2_000

/** A fault of one kind that the servers tell of again within this time is not logged again. */
export const repeatedErrorLogMs = 10_000

/** A connection that answers no ping for about three of these is given up. */
export const pingIntervalMs = 5_000

export const pingsOutMax = 2

/** How often requests are looked over whose time is up: how late a time limit may be. */
export const requestSweepMs = 50

/** Copies of a stream where the servers are a cluster. */
export const replicasCluster = 3

/** Buckets that a new cluster gets unless it is told otherwise; fixed from then on. */
export const bucketsDefault = 4

export const bucketsMax = 64

/** Messages of one atomic batch: what a group aims at, and what the servers take. */
export const batchTargetMessages = 500

export const batchMessagesMax = 1_000

/** Log items of one message, and bytes of one that holds several. */
export const logMessageItemsMax = 16

export const logMessageBytes = 64 * 1024

/** Bytes of one group: it is closed when it has so many. */
export const batchTargetBytes = 4 * 1024 * 1024

/** Atomic batches under way at once in one bucket. */
export const batchesInFlight = 2

/** How long the acknowledgement of a write may take before the servers are asked about it. */
export const writeTimeoutMs = 3_000

/** How long one read may take before it is given up. */
export const readTimeoutMs = 2_000

/**
 * A key is asked for again after so long, beside the questions that are not answered yet: a stream
 * without a leader answers nobody, and its next leader nothing that was asked before.
 */
export const readResendMs = 250

/** A call that came to nothing for so long fails, when it is certain that nothing was kept. */
export const giveUpMs = 8_000

/** Wait before a write or read is tried again. */
export const retryDelayMs = 50

/** A batch that fails so often without a member at fault is sent member by member. */
export const batchFailuresMax = 3

/** Actors whose last sequences are remembered. */
export const cachedActorsMax = 50_000

/** A longer text of a state is not kept for the first commit after a load. */
export const cachedStateCharsMax = 1_024

/** Keys in one read of many (the servers take 1,024), and reads of one key at once. */
export const keysPerReadMax = 1_000

/** How often a read from a copy that is behind is tried again. */
export const staleRetriesMax = 200

export const staleRetryMs = 5

/** When all of the store is read: keys of one question, and actors that are read at once. */
export const contentsKeysPerRead = 300

export const contentsActorsInFlight = 16

/** Items above the recorded head that are asked for with an actor, first and then. */
export const contentsExtraItems: ReadonlyArray<number> = [1, 48]

/** Messages of one step of reading a stream in its order. */
export const streamScanMessages = 250

/** Room left for headers in a message, bytes. */
export const headerReserveBytes = 1_024

/** One removal looks so many numbers further for how far a log is cleared. */
export const watermarkAdvanceMax = 256

/** How long marks stay of cleared items, of ended timers and of actors without a log. */
export const markerTtl = "10s"

/** How long making a stream may take, while a cluster finds itself. */
export const createStreamTimeoutMs = 20_000

/**
 * After so long it is asked for again: a stream without a leader yet answers nobody, and of those
 * who make it at once not everyone is answered.
 */
export const createStreamResendMs = 750

/** A listing of ids is kept so long for the next page. */
export const listingCacheMs = 30_000

/** How long the last owner of a shard still tells whoever asks that the shard has moved. */
export const movedReplyMs = 1_000

/** It tells nodes nothing of a first copy that it reads later: the next owner may have decided. */
export const movedReplyLatestMs = movedReplyMs + 500

/** For so long after a node took a shard it must be granted each message (`moving.ts`). */
export const tenureSettledMs = 2 * movedReplyMs

/** How long it waits for that. */
export const grantTimeoutMs = 2_000

/** A client that is no node is told so only after a while, since the next owner may answer it. */
export const noOwnerReplyDelayMs = 250

/** How soon a message whose shard moves is sent again, the first time and at the longest. */
export const movedResendMs = 15

export const movedResendMaxMs = 240

/** It is sent again too when nobody has said anything of it for so long. */
export const resendAfterMs = 500

/** A message of which nothing was heard for so long may be lost: it is sent again. */
export const silenceResendMs = 1_000

/** For so long at least a message that was answered is known, should it come again. */
export const answeredKeepMs = 10_000

/** How long the answer to a message may come after the word that it was answered. */
export const lateReplyMs = 500

/** For so long a node tells of shards that it held what it has not decided. */
export const pastTenureKeepMs = 2 * answeredKeepMs

/** How long a caller should wait for a shard to be served. */
export const noOwnerRetryMs = 1_000

/** The bucket that the nodes of a cluster share, and how long an expired key is told of. */
export const clusterBucket = "cluster"

export const registryMarkerTtlMs = 3_600_000

/** How long the lease of who fills a cluster lasts, and how often it is renewed. */
export const restorerTtlMs = 10_000

export const restorerRenewMs = 2_000

/** How long one call of the registry may take. */
export const registryTimeoutMs = 5_000

/**
 * A registry that does not answer for so long is asked by way of another server: this one may be
 * cut off from the others. Answers under way are lost with the connection, so it is longer than
 * nearly all elections take (4 to 9 s), and shorter than a membership lasts.
 */
export const registryServerSwitchMs = 8_000

/** Wait before a watch that broke off is begun anew. */
export const registryWatchRetryMs = 500

/** A watch that told nothing for so long is begun anew: nodes refresh more often than that. */
export const registryWatchSilenceMs = 6_000

/** The bucket of the record port. */
export const recordsBucket = "records"

/** How long the mark of a deleted record stays; a view that was fed too long ago begins anew. */
export const recordMarkerTtl = "3600s"

export const viewResumeMaxMs = 1_800_000

/** Bytes of an encoded key; a NATS subject and what is around it have 4,096. */
export const recordKeyBytesMax = 3_500

/** How long a read waits for the view before it asks the leader. */
export const viewLagWaitMs = 1_000

/** Wait before a view that broke off is fed anew, and at most while it cannot be filled. */
export const viewRetryMs = 250

export const viewRetryMaxMs = 30_000

/** Messages that the view asks for ahead, that it writes together, and that may wait for that. */
export const viewFetchMessages = 2_000

export const viewWriteMessages = 1_000

export const viewQueueMax = 64_000

/** Writes in one turn of the event loop: as many as one turn may bring messages for. */
export const viewWritesPerTurn = 8

/** How often it is looked whether the view is where the stream is, and how often it notes that. */
export const viewCheckMs = 20_000

export const viewProgressMs = 300_000

/** For so long after its start a node says that it is not ready while its view is being filled. */
export const viewUnreadyMs = 60_000

/** Names of a listing's next page that stood at the end of the last one. */
export const listingOverlapNames = 100

/** Keys that are listed while the view is behind; of a larger part the view is waited for. */
export const listedKeysMax = 100_000

/** Plain publishes under way at once in one bucket. */
export const singleWritesInFlight = 256

/** Commits that make a window, by which plain and grouped writing are compared. */
export const writeModeSamples = 64

/** Windows until the slower manner is tried again: at first, and at most. */
export const writeModeWindows = 2

export const writeModeWindowsMax = 1_024

/** The bucket of the blob port. */
export const blobsBucket = "blobs"

/** Bytes of one message of a blob, unless the servers take less. */
export const natsBlobChunkBytes = 128 * 1024

/** Chunks of one blob that are written at once, and that are read before they are asked for. */
export const blobWritesInFlight = 4

export const blobReadsAhead = 2

/**
 * How long an upload or download waits that has begun: longer than the longest election of a leader
 * that was seen (12 s), since all of it would be lost.
 */
export const blobGiveUpMs = 30_000

/** How long the writing of a blob may take; chunks much older that no head names are left over. */
export const blobUploadMaxMs = 6 * 3_600_000

/** How far the clocks of nodes may be apart, for what is left over. */
export const blobClockSkewMs = 3_600_000

/** How long a blob that is removed can still be read: this, and its time at the slowest rate. */
export const blobReadGraceMs = 60_000

export const blobReadGraceMaxMs = 3_600_000

export const blobReadRateMinBytesPerMs = 32

/** Removed blobs whose chunks this node will delete; beyond that the sweep does. */
export const blobGarbageMax = 100_000

/** How often it is looked whose time is over, and how many are deleted at once. */
export const blobPurgeIntervalMs = 1_000

export const blobPurgesInFlight = 4

/** How often each node looks for left-over chunks; they must be found twice. */
export const blobSweepIntervalMs = 6 * 3_600_000

/** Left-overs that are remembered until the next sweep. */
export const blobOrphansMax = 10_000
