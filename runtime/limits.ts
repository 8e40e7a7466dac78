/**
 * Every limit of the runtime, of placement and of the storage backends. Names end in their unit.
 * The relations between limits are checked at start.
 */

/** Limits of one node's runtime; `SystemOptions.limits` replaces some of them. */
export const defaultLimits = {
  /** Messages without a reply in one actor's inbox; the actor rejects further ones. */
  inboxMax: 10_000,
  /** Actors in memory; above this the node passivates the least recently used idle ones. */
  residentActorsMax: 10_000,
  /** Actors in memory, busy ones too; the node rejects messages that need one more. */
  activeActorsMax: 50_000,
  /**
   * An actor with a state of this many bytes in memory, by an estimate, is large. Of the others the
   * node has `residentActorsMax`.
   */
  largeActorBytesMin: 16 * 1024,
  /**
   * Estimated bytes of the states of large actors; above this the node passivates the least
   * recently used idle ones. So no client can fill the memory by actors that are large.
   */
  largeActorsBytesMax: 128 * 1024 * 1024,
  /** Actors that the node checks at most when it needs space for one more. */
  evictionChecksMax: 64,
  /** The node passivates an actor that receives no message for this time. */
  idleMs: 60_000,
  /** How often the node passivates idle actors. */
  sweepMs: 5_000,
  /** Commits in one group; groups and unanswered commits in flight at once in one stream. */
  groupCommitsMax: 500,
  groupsInFlightMax: 1,
  commitsInFlightMax: 4_000,
  /** Appended items in one actor's commit; further items wait for the next commit. */
  commitItemsMax: 1_000,
  /** How often an actor decides on one message, counting conflicts and failed writes. */
  decisionAttemptsMax: 3,
  /** Pause before an actor is loaded again after the store failed. */
  reloadDelayMs: 50,
  /** Deadline of a call of the store. */
  storageDeadlineMs: 10_000,
  /**
   * Characters of the log items that an actor reads at a time when it is loaded, and the actors of
   * one stream that do so at once: strangers may have filled the logs of many with large items.
   */
  recallCharsMax: 4 * 1024 * 1024,
  recallReadsMax: 8,
  /** Backoff between the restarts of an actor: first and longest. */
  restartDelayMs: 10,
  restartDelayMaxMs: 10_000,
  /** This many restarts within the window quarantine an actor. */
  restartsMax: 5,
  restartWindowMs: 60_000,
  /** How long a quarantine lasts unless lifted, and how long callers should wait. */
  quarantineMs: 600_000,
  quarantineRetryMs: 60_000,
  /** Actors of which a node remembers the last fault until it restarts; the oldest leave. */
  lastFaultsMax: 1_000,
  /** How long the callers of an overloaded actor should wait. */
  overloadRetryMs: 1_000,
  /** Timers fire at multiples of this time. */
  timerResolutionMs: 10,
  /** Longest sleep of the timer service; after it the service notices a clock that jumped. */
  timerSleepMaxMs: 1_000,
  /**
   * The earliest timers of a shard, this many, are read into memory at once. A shard has at most
   * twice as many in memory, besides deferred and retried ones.
   */
  shardTimersMax: 512,
  /**
   * How far ahead the node loads the timers of a shard; it loads more after half of this time. A
   * store that would have to search for the next timer need not search beyond.
   */
  timersLookaheadMs: 1_200_000,
  /** Shards of one stream whose timers are read at once. */
  shardLoadsMax: 4,
  /**
   * How often the node reads the timers of a shard from the store again: the store may keep a
   * commit long after it timed out.
   */
  timersRescanMs: 600_000,
  /** The same after an indeterminate commit, or on the next owner of a shard; how many times. */
  lateCommitRescanMs: 30_000,
  lateCommitRescans: 4,
  /** Timers of one stream that are delivered but not yet answered, at once. */
  timersInFlightMax: 256,
  /**
   * Due timers of one stream that cannot be delivered yet. At this number the node reads no more
   * from that stream until it can deliver some.
   */
  timersStuckMax: 50_000,
  /** Timers delivered in one step; the others follow `timerResolutionMs` later. */
  timerBatchMax: 128,
  /** Pause before a timer that could not be delivered is delivered again. */
  timerRetryMs: 1_000,
  /** Deadline of an ask of another node. */
  askDeadlineMs: 10_000,
  /** First and longest pause before an ask that no node accepted is repeated. */
  unownedRetryMs: 10,
  unownedRetryMaxMs: 250,
  /** Asks that wait until a node owns their shards; one more fails. */
  unownedAsksMax: 10_000,
  /** How long the release of a shard waits for its accepted messages. */
  handoffMs: 15_000,
  /** How long a drain waits for the handoff, and then for commits, effects and asks under way. */
  drainMs: 20_000
}

/**
 * The limits of a node. A name ends in its unit: `Ms` are milliseconds, `Bytes` bytes, and `Max`
 * alone a number of things. A relation between limits that does not hold is a defect at the start.
 */
export type Limits = Readonly<typeof defaultLimits>

/** Bytes in memory for a character of a stored state, where its kind does not estimate them. */
export const bytesPerStateChar = 2

type Relations<L> = ReadonlyArray<readonly [relation: string, holds: (limits: L) => boolean]>

/** The defaults with these changes; a relation that does not hold is a defect at start. */
const checked = <L extends Readonly<Record<string, number>>>(
  defaults: L,
  changes: Partial<L>,
  relations: Relations<L>
): L => {
  const limits = { ...defaults, ...changes }
  for (const [name, value] of Object.entries(limits)) {
    if (!(value >= 1)) throw new RangeError(`limits: ${name} >= 1 does not hold`)
  }
  for (const [relation, holds] of relations) {
    if (!holds(limits)) throw new RangeError(`limits: ${relation} does not hold`)
  }
  return limits
}

const relations: Relations<Limits> = [
  ["restartDelayMs <= restartDelayMaxMs", (l) => l.restartDelayMs <= l.restartDelayMaxMs],
  ["quarantineRetryMs <= quarantineMs", (l) => l.quarantineRetryMs <= l.quarantineMs],
  ["restartDelayMaxMs <= restartWindowMs", (l) => l.restartDelayMaxMs <= l.restartWindowMs],
  ["timerResolutionMs <= timerSleepMaxMs", (l) => l.timerResolutionMs <= l.timerSleepMaxMs],
  ["residentActorsMax <= activeActorsMax", (l) => l.residentActorsMax <= l.activeActorsMax],
  [
    "largeActorBytesMin <= largeActorsBytesMax",
    (l) => l.largeActorBytesMin <= l.largeActorsBytesMax
  ],
  ["reloadDelayMs <= storageDeadlineMs", (l) => l.reloadDelayMs <= l.storageDeadlineMs],
  ["unownedRetryMs <= unownedRetryMaxMs", (l) => l.unownedRetryMs <= l.unownedRetryMaxMs],
  ["lateCommitRescanMs <= timersRescanMs", (l) => l.lateCommitRescanMs <= l.timersRescanMs],
  ["sweepMs <= idleMs", (l) => l.sweepMs <= l.idleMs],
  ["2 sweepMs <= timersLookaheadMs", (l) => 2 * l.sweepMs <= l.timersLookaheadMs]
]

/** The defaults with these changes; a relation that does not hold is a defect at start. */
export const makeLimits = (changes: Partial<Limits> = {}): Limits =>
  checked(defaultLimits, changes, relations)

/* Placement. */

/** Limits of a node's placement in a cluster. */
export const defaultPlacementLimits = {
  /** A node's membership expires this long after its last refresh. */
  ttlMs: 13_000,
  /** How often a node refreshes its membership. */
  refreshMs: 1_000,
  /**
   * A node that cannot refresh stops serving this long before its membership can expire. So a
   * commit that it sent before may be in flight for this time.
   */
  marginMs: 3_000,
  /** Deadline of a refresh; then the node tries again. */
  refreshDeadlineMs: 2_000,
  /** Deadline of any other call of the registry. */
  callDeadlineMs: 5_000,
  /** Pause after a failed call. */
  retryMs: 500,
  /** A joining node gives up after this many failed calls. */
  joinFailuresMax: 5,
  /** Claims that a node takes or releases at once. */
  callsMax: 64,
  /** Shards that a node drains at once; it serves the others meanwhile. */
  drainsMax: 64,
  /** A member whose refreshes were not observed for this time does not count as living. */
  memberSilentMs: 30_000,
  /** How long a leaving node waits until the others have taken its shards. */
  takeoverMs: 5_000,
  /** The witnesses of a node, at most; how often it pings each, and the deadline of a ping. */
  witnessesMax: 3,
  pingMs: 300,
  pingDeadlineMs: 800,
  /** Unanswered pings in a row after which a node replaces a witness, and for how long. */
  pingFailuresMax: 2,
  witnessRetryMs: 5_000,
  /**
   * A node serves for this time after it sent a ping that a witness has answered. It must fit the
   * `removeAfterMs` of all other nodes: a version that raises it runs beside older ones.
   */
  answerMs: 2_400,
  /** A witness agrees to the removal of a node that has not pinged for this time. */
  removeAfterMs: 3_000,
  /** How often a witness checks whether a node is silent. */
  witnessCheckMs: 250,
  /** How long outcomes wait until it is known whether a lapsed lease continues. */
  leaseGraceMs: 1_000,
  /** How long a node that was lost is shown to people. */
  lostShownMs: 600_000
}

/** The limits of a node's membership of a cluster and of its shards; named as {@link Limits}. */
export type PlacementLimits = Readonly<typeof defaultPlacementLimits>

const placementRelations: Relations<PlacementLimits> = [
  // Two refreshes may fail before the node stops serving. NATS elections take 4 to 9 s; the node
  // keeps serving meanwhile, because at least `ttlMs - marginMs - refreshMs` remain.
  [
    "refreshMs + 2 (refreshDeadlineMs + retryMs) <= ttlMs - marginMs",
    (l) => l.refreshMs + 2 * (l.refreshDeadlineMs + l.retryMs) <= l.ttlMs - l.marginMs
  ],
  ["ttlMs <= memberSilentMs", (l) => l.ttlMs <= l.memberSilentMs],
  // The rates of two clocks may differ by a fifth.
  ["5 answerMs <= 4 removeAfterMs", (l) => 5 * l.answerMs <= 4 * l.removeAfterMs],
  // One ping may be lost.
  [
    "2 (pingMs + pingDeadlineMs) <= answerMs",
    (l) => 2 * (l.pingMs + l.pingDeadlineMs) <= l.answerMs
  ]
]

/** As {@link makeLimits}. */
export const makePlacementLimits = (changes: Partial<PlacementLimits> = {}): PlacementLimits =>
  checked(defaultPlacementLimits, changes, placementRelations)

/* The embedded store. */

/** Content up to this many bytes is stored in the database, larger content in a file. */
export const inlineBlobBytesMax = 64 * 1024

/** Bytes of one read of a blob's file. */
export const embeddedBlobChunkBytes = 128 * 1024

/**
 * So many chunks of files are read at once, a few for each thread that reads files; and the memory
 * of so many is kept for the next ones.
 */
export const chunkReadsMax = 16

/** One write removes the marks of this many confirmed blobs; fewer marks wait for an upload. */
export const confirmedBlobsMax = 500

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

/** Rows of one page when an archive reads all of the store. */
export const contentsPage = 200

/** An archive reads logs with fewer items than this together with their actors. */
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

/* The NATS backend. */

/** How long one attempt to connect may take. */
export const connectTimeoutMs = 5_000

/** Wait between two attempts to connect to the same server. */
export const reconnectWaitMs = 250

/** How long the permission check of a node may take, and one attempt of it. */
export const permissionCheckMs = 20_000

export const permissionCheckAttemptMs = 2_000

/** An error of one kind that the servers repeat within this time is not logged again. */
export const repeatedErrorLogMs = 10_000

/** A connection ends after about three of these without an answer to a ping. */
export const pingIntervalMs = 5_000

export const pingsOutMax = 2

/** How often a node ends expired requests; a request may exceed its timeout by this time. */
export const requestSweepMs = 50

/** Replicas of a stream when the NATS servers are a cluster. */
export const replicasCluster = 3

/** Default number of buckets of a new cluster; it cannot change later. */
export const bucketsDefault = 4

export const bucketsMax = 64

/** Messages of one atomic batch: the target of a group, and the maximum of the servers. */
export const batchTargetMessages = 500

export const batchMessagesMax = 1_000

/** Log items of one message, and bytes of one that holds several. */
export const logMessageItemsMax = 16

export const logMessageBytes = 64 * 1024

/** A group with this many bytes takes no further commits. */
export const batchTargetBytes = 4 * 1024 * 1024

/** Atomic batches in flight at once in one bucket. */
export const batchesInFlight = 2

/** How long an acknowledgement may take before the node reads the outcome of the write. */
export const writeTimeoutMs = 3_000

/** Deadline of one read. */
export const readTimeoutMs = 2_000

/**
 * A read is sent again after this time, in addition to the unanswered ones: a stream without a
 * leader does not answer, and its next leader does not answer earlier requests.
 */
export const readResendMs = 250

/** A call fails after this time without success, if certainly nothing was stored. */
export const giveUpMs = 8_000

/** Pause before a write or read is retried. */
export const retryDelayMs = 50

/** After this many failures a commit is sent alone. */
export const batchFailuresMax = 3

/** Actors whose last sequences are kept in memory. */
export const cachedActorsMax = 50_000

/** A longer state is not cached for the first commit after a load. */
export const cachedStateCharsMax = 1_024

/** Keys in one read of many (the servers take 1,024), and reads of one key at once. */
export const keysPerReadMax = 1_000

/** How often a node repeats a read from an outdated replica, and the pause between two. */
export const staleRetriesMax = 200

export const staleRetryMs = 5

/** When the whole store is read: keys of one request, and actors that are read at once. */
export const contentsKeysPerRead = 300

export const contentsActorsInFlight = 16

/** Items above the recorded head that are read with an actor: first, and at the second attempt. */
export const contentsExtraItems: ReadonlyArray<number> = [1, 48]

/** Bytes of a message that are reserved for headers. */
export const headerReserveBytes = 1_024

/** Bytes of a read of many keys that are reserved for the key of a read barrier. */
export const barrierReserveBytes = 1_024

/** How far one removal may advance the low watermark of a log. */
export const watermarkAdvanceMax = 256

/** How long markers of removed items, consumed signals and actors without a log stay. */
export const markerTtl = "10s"

/** The same for ended timers, and the time after which certainly none is listed any more. */
export const timerMarkerTtlSeconds = 1

export const endedTimerKeepMs = 10_000

/** A search for timers that takes longer returns what it has found. */
export const timerSearchMs = 1_000

/**
 * A search for timers ends at a multiple of this time, since round numbers need fewer requests. In
 * the near future it is also the size of the blocks of a search that does not know how many timers
 * the shard has.
 */
export const timerBlockMs = 100_000

/** How far the near future of such a search reaches. */
export const timersNearMs = 1_800_000

/** The size of its first blocks, which cover the next 100 to 200 s. */
export const timersNextBlockMs = 10_000

/** How long creating a stream may take while a cluster elects its first leaders. */
export const createStreamTimeoutMs = 20_000

/**
 * The request is repeated after this time: a stream without a leader does not answer, and if
 * several nodes create the stream at once, some get no answer.
 */
export const createStreamResendMs = 750

/** Ids of actors that one pass over all names finds; it has at most twice as many in memory. */
export const scannedIdsMax = 100_000

/** How long a listing of ids is cached for its next page. */
export const listingCacheMs = 30_000

/** How long the last owner of a shard answers `moved` (`message-grants.ts`). */
export const movedReplyMs = 1_000

/** After this time the last owner answers no first copy with `moved`: the next may have decided. */
export const movedReplyLatestMs = movedReplyMs + 500

/** A node needs a grant for each message until it has held the shard this long. */
export const tenureSettledMs = 2 * movedReplyMs

/** A node with this many requests in flight gathers its messages before it writes them. */
export const busyInFlight = 32

/** It gathers one message for so many requests in flight, but no more than a number of messages. */
export const busyInFlightShare = 8

export const turnMessagesMax = 256

/** It waits no longer, since the requests in flight may depend on these messages. */
export const busyWaitMs = 4

/**
 * Messages of one turn of the event loop for one node that go as one, and their UTF-16 units, of
 * which each takes three bytes at most.
 */
export const bundleMessagesMax = 256

export const bundleCharsMax = 256 * 1024

/** Bundles whose asks are sent to their subjects if nobody has received the bundle. */
export const bundlesRememberedMax = 1_000

/** How long a node waits for a grant. */
export const grantTimeoutMs = 2_000

/** Delay of a `NoOwner` answer to other clients: the next owner may answer them first. */
export const noOwnerReplyDelayMs = 250

/** First and longest delay before a message whose shard moves is sent again. */
export const movedResendMs = 15

export const movedResendMaxMs = 240

/** A message whose shard moves is also resent after this time without an answer. */
export const resendAfterMs = 500

/** Any message without an answer for this time may be lost, so it is resent. */
export const silenceResendMs = 1_000

/** How long a node remembers answered messages, to recognize repeated copies. */
export const answeredKeepMs = 10_000

/** How far the clocks of nodes, and of clients that sign messages, may differ. */
export const envelopeSkewMs = 2_000

/**
 * The age above which a node decides a message only with a grant. A node knows a message for as
 * long as it could be decided without one, from any clock that is right enough.
 */
export const envelopeAgeMaxMs = answeredKeepMs - envelopeSkewMs

/** Signed messages of clients that are no nodes: so many in `answeredKeepMs`, for each node. */
export const foreignEnvelopesMax = 100_000

/** Hints of changes that a node remembers in each of two generations of `answeredKeepMs`. */
export const receivedHintsMax = 100_000

/** Interval of the log lines about messages that are not signed. */
export const forgeryLogMs = 60_000

/** How much later than the report `answered` the reply itself may arrive. */
export const lateReplyMs = 500

/** How long a node remembers its past tenures. */
export const pastTenureKeepMs = 2 * answeredKeepMs

/** How long a caller should wait until a node serves the shard. */
export const noOwnerRetryMs = 1_000

/** The bucket of the registry, and how long the marker of an expired key remains. */
export const clusterBucket = "cluster"

export const registryMarkerTtlMs = 3_600_000

/** How long the lease of a restoring process lasts, and how often it is renewed. */
export const restorerTtlMs = 10_000

export const restorerRenewMs = 2_000

/** How long one call of the registry may take. */
export const registryTimeoutMs = 5_000

/**
 * A node connects to another server when the registry has not answered for this time: its server
 * may be cut off from the others. Pending answers are lost with the connection, so this is longer
 * than nearly all elections (4 to 9 s), and shorter than a membership.
 */
export const registryServerSwitchMs = 8_000

/** Pause before an ended watch is restarted. */
export const registryWatchRetryMs = 500

/** A watch without entries for this time is restarted: nodes refresh more often. */
export const registryWatchSilenceMs = 6_000

/** The bucket of the record port. */
export const recordsBucket = "records"

/** How long the marker of a deleted record remains, and how old a view's progress may be. */
export const recordMarkerTtl = "3600s"

export const viewResumeMaxMs = 1_800_000

/** Bytes of an encoded key; a NATS control line with its subject has 4,096. */
export const recordKeyBytesMax = 3_500

/** How long a read waits for the view before it reads from the leader. */
export const viewLagWaitMs = 1_000

/** First and longest pause before an interrupted view follows its stream again. */
export const viewRetryMs = 250

export const viewRetryMaxMs = 30_000

/** Messages that the view requests ahead, writes together, and queues at most. */
export const viewFetchMessages = 2_000

export const viewWriteMessages = 1_000

export const viewQueueMax = 64_000

/** Writes to the view in one turn of the event loop. */
export const viewWritesPerTurn = 8

/** How often the view is compared with the stream, and its progress stored without changes. */
export const viewCheckMs = 20_000

export const viewProgressMs = 300_000

/** How long a node is not ready while its first view is filled. */
export const viewUnreadyMs = 60_000

/** Names that a listing's page repeats from the end of the previous page. */
export const listingOverlapNames = 100

/** Keys that a read lists while the view is behind; a read of more keys waits for the view. */
export const listedKeysMax = 100_000

/** Plain publishes in flight at once in one bucket. */
export const singleWritesInFlight = 256

/** Commits of one window; the writer compares plain and grouped writes by windows. */
export const writeModeSamples = 64

/** Windows until the writer tries the slower mode again: at first, and at most. */
export const writeModeWindows = 2

export const writeModeWindowsMax = 1_024

/** The bucket of the blob port. */
export const blobsBucket = "blobs"

/** Bytes of one message of a blob, unless the servers take less. */
export const natsBlobChunkBytes = 128 * 1024

/** Chunks of one blob that are written at once, and that are read ahead. */
export const blobWritesInFlight = 4

export const blobReadsAhead = 2

/** Chunks that a process requests at once, for all downloads: the others take no memory yet. */
export const blobChunkReadsMax = 64

/**
 * How long a running upload or download waits for a leader: longer than the longest observed
 * election (12 s), because a failure loses the whole transfer.
 */
export const blobGiveUpMs = 30_000

/** How long an upload may take; much older chunks that no head names are orphans. */
export const blobUploadMaxMs = 6 * 3_600_000

/** How far the clocks of nodes may differ, for the age of orphans. */
export const blobClockSkewMs = 3_600_000

/** This long after the start of a blob's upload, no unfinished commit can name the blob. */
export const blobSettledMs = 24 * 3_600_000

if (blobSettledMs <= blobUploadMaxMs + blobClockSkewMs) {
  throw new Error("runtime/limits.ts: a blob settles only after its upload")
}

/** A removed blob remains readable this long, plus its transfer time at the lowest rate. */
export const blobReadGraceMs = 60_000

export const blobReadGraceMaxMs = 3_600_000

export const blobReadRateMinBytesPerMs = 32

/** Removed blobs whose chunks a node plans to delete; the sweep deletes the chunks of others. */
export const blobGarbageMax = 100_000

/** How often due chunks are deleted, and how many sets at once. */
export const blobPurgeIntervalMs = 1_000

export const blobPurgesInFlight = 4

/** How often each node looks for orphans; it must find them twice. */
export const blobSweepIntervalMs = 6 * 3_600_000

/** Orphans that a node remembers until its next sweep. */
export const blobOrphansMax = 10_000

/**
 * Characters of a state that an inspection has. A character takes up to six bytes as JSON within
 * JSON, so they fit the largest message that NATS servers take by default, 1 MiB.
 */
export const inspectedStateCharsMax = 128 * 1024

/** Kinds of waiting messages that an inspection has: those with the most messages. */
export const inspectedKindsMax = 20
