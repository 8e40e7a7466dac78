/** Every bound of the HTTP side. Each name ends in its unit. */
/** The bounds of documents that an operator may choose (protocol §0). */
export interface DocumentLimits {
  /** Bytes of a document. */
  readonly documentBytesMax: number
  /** Levels of elements; the root is level 1. */
  readonly xmlDepthMax: number
  /** `to` elements of one notification. */
  readonly recipientsMax: number
}

export const defaultDocumentLimits: DocumentLimits = {
  documentBytesMax: 256 * 1024,
  xmlDepthMax: 32,
  recipientsMax: 1000
}

/** Elements and pieces of text of one document together. */
export const xmlNodesMax = 20_000

/** Length of an element or attribute name. */
export const xmlNameCharsMax = 128

/** Attributes of one element. */
export const xmlAttributesMax = 64

/** Deepest nesting of values in a notification of JSON-LD, the root counted. */
export const linkedDataDepthMax = 32

/** Values of one notification of JSON-LD. */
export const linkedDataValuesMax = 20_000

/** Length of the description that is taken from JSON-LD. */
export const linkedDataTitleCharsMax = 1000

/** Length of one URI in a document or header. */
export const uriCharsMax = 2048

/** Length of a mailbox name or other slug (protocol §0). */
export const slugCharsMax = 64

/** Request line and header fields together (protocol §0). */
export const headerBlockBytesMax = 16 * 1024

/** Length of an Accept field that is read; longer ones are refused as malformed. */
export const acceptCharsMax = 2048

/** Media ranges of one Accept field that are looked at. */
export const acceptRangesMax = 64

/** Answers of negotiation that are remembered, for each set of offered types. */
export const acceptCacheMax = 256

/** Entity tags of one If-Match or If-None-Match field that are looked at. */
export const entityTagsMax = 64

/** Length of a request path. */
export const pathCharsMax = 2048

/** Segments of a request path. */
export const pathSegmentsMax = 16

/** Body of an HTML form. */
export const formBytesMax = 64 * 1024

/** Fields of an HTML form or of a query. */
export const formFieldsMax = 128

/** Entries of one page of a listing: when not asked, and at the most. */
export const pageEntriesDefault = 100

export const pageEntriesMax = 1000

/** Longest wait of a long poll (`Prefer: wait`), in seconds as in the field. */
export const longPollSecondsMax = 60

/** A comment is sent on a silent event stream this often. */
export const eventHeartbeatMs = 15_000

/** Unsent bytes at which an event stream's reader is given up. */
export const eventBufferBytesMax = 256 * 1024

/** Received bytes not yet taken by the handler at which an upload is paused. */
export const uploadBufferBytesMax = 256 * 1024

/** Time that a whole document body may take to arrive. */
export const bodyDeadlineMs = 20_000

/** A reader that takes nothing of a streamed answer for this long is given up. */
export const readerStallMs = 30_000

/** A refused body up to this size is read and thrown away, so that the connection can live on. */
export const refusedBodyBytesMax = 64 * 1024

/** Time for the last answers to leave the process before its connections are closed. */
export const drainGraceMs = 100

/** `Retry-After` of 503 when overloaded, and of 503 from a quarantined actor, in seconds. */
export const overloadedRetrySeconds = 1

export const quarantinedRetrySeconds = 60

const holds = (relation: boolean, name: string): void => {
  if (!relation) throw new Error(`http/limits.ts: ${name} does not hold`)
}

holds(pageEntriesDefault <= pageEntriesMax, "pageEntriesDefault <= pageEntriesMax")

holds(pathCharsMax + acceptCharsMax < headerBlockBytesMax, "path and Accept fit the header block")

holds(eventHeartbeatMs < longPollSecondsMax * 1000, "heartbeat is shorter than a long poll")

/** Length of an Idempotency-Key. */
export const idempotencyKeyCharsMax = 255

/** Length of a message or mailbox password that is looked at. */
export const passwordCharsMax = 256

export const passwordCharsMin = 16

/** Tokens that were right recently, and addresses that had a wrong one, that a node remembers. */
export const provenTokensMax = 20_000

export const suspectsMax = 20_000

/** Accounts, and addresses, whose requests a node counts; of more, the least busy begin again. */
export const ratedMax = 200_000

/** So long after it was right a request with a token counts for its account. */
export const countedTokenMs = 60_000

/** Addresses of one X-Forwarded-For field that are looked at, from its end. */
export const forwardedMax = 16

/** Length of a token's name, and how long a token may be valid. */
export const tokenLabelCharsMax = 100

export const tokenLifetimeMaxMs = 10 * 365 * 24 * 60 * 60 * 1000

/** Records of tokens that are removed together. */
export const tokenRecordsPage = 100

/** Blobs that the sweep for orphans looks at together. */
export const sweepPageBlobs = 500

/** Where blobs may be arriving at other nodes, an orphan is this old at least. */
export const orphanAgeMs = 86_400_000

/** Length of a header value that is kept, such as Content-Type. */
export const headerValueCharsMax = 512

/** A feed is dated when its last entry is this old: dates are whole seconds, clocks differ. */
export const datedAfterMs = 5_000

/** Log numbers that a page of the newest looks back over, where most are removed. */
export const latestScannedMax = 10_000

/** Listings of mailboxes that are kept as they were shown, all together, in bytes. */
export const shownListingsBytesMax = 4 * 1024 * 1024

/** Mailboxes whose address a node keeps in memory, so that a deposit does not build it again. */
export const mailboxRefsMax = 1_000

/** Length of a mailbox's title. */
export const titleCharsMax = 200

/** Items that an event stream or a search in a log reads at a time. */
export const eventItemsMax = 100

/** An open wait or event stream looks again after this time, should a hint have been lost. */
export const watchRecheckMs = 30_000

/** Actors that one listing asks at a time. */
export const askedAtOnceMax = 16

/** Length of the text that a cabinet's query looks for. */
export const containsCharsMax = 200

/** Notifications that one answer of a cabinet looks at, shown or not, at the most. */
export const cabinetScanItemsMax = 10_000

/** The same in characters of what is stored of them. */
export const cabinetScanCharsMax = 16 * 1024 * 1024

/** The fewest notifications that a cabinet reads of one mailbox at a time. */
export const cabinetChunkItemsMin = 10

/** Notifications of an outgoing mailbox that one request asks, and entries that it looks at. */
export const outgoingAskedMax = 1000

export const outgoingScannedMax = 10_000

/** Entries of an outgoing mailbox that are read at a time, when only some of them are wanted. */
export const outgoingEntriesMin = 100

/** A notification is queued so long after its entry was made, at the most. */
export const queueDelayMaxMs = 60_000

/** An entry whose notification was not queued for this long never will be. */
export const abandonedEntryMs = 24 * 60 * 60 * 1000

/** Time between two events of one notification's stream: what changes meanwhile is told once. */
export const statusEventPauseMs = 100

/** How often an open page without an event stream looks whether it has changed. */
export const pageRefreshMs = 3_000

/** What a WebSub subscriber may choose (§5.1): bytes of its secret, seconds of its lease. */
export const subscriberSecretBytesMax = 199

export const leaseSecondsDefault = 10 * 24 * 60 * 60

export const leaseSecondsMax = 30 * 24 * 60 * 60

/** Text that an href answer of a session may refer to, and references followed to reach it. */
export const referredBytesMax = 8 * 1024

export const referenceHopsMax = 4

/** How long a fixed file may be kept without asking again. */
export const fixedMaxAgeSeconds = 24 * 60 * 60

/* Every bound of tokens of the outside issuer. */

/** A key set, in bytes, and its keys. */
export const keySetBytesMax = 256 * 1024

export const keysMax = 100

/** What an issuer tells of itself, in characters. */
export const metadataCharsMax = 256 * 1024

/** Keys are looked for again when they are so old. */
export const keysFreshMs = 10 * 60_000

/** While that fails they are used until they are so old; then no token can be checked. */
export const keysStaleMs = 60 * 60_000

/** Time between two looks for keys, whatever the tokens ask for. */
export const keysPauseMs = 10_000

/** Tokens that were checked and are remembered until they expire. */
export const verifiedTokensMax = 10_000

/** Length of the name of a claim, and the dots in it. */
export const claimPathCharsMax = 200

export const claimPathDotsMax = 8

/** Roles of one token that are looked at. */
export const claimedRolesMax = 1_000

/** How far the issuer's clock may be off, at the most. */
export const clockToleranceMaxMs = 5 * 60_000

const issuerRelationsHold = (relation: boolean, name: string): void => {
  if (!relation) throw new Error(`http/limits.ts: ${name} does not hold`)
}

issuerRelationsHold(
  keysPauseMs < keysFreshMs,
  "keys are looked for more than once while they are fresh"
)

issuerRelationsHold(keysFreshMs < keysStaleMs, "keys are looked for again before they are given up")

/* Every bound of queries and of the tables that they read. */

/** Conditions of one query, and how deep they may stand in each other. */
export const conditionNodesMax = 100

export const conditionDepthMax = 16

/** Length of a value that is compared. */
export const valueCharsMax = 200

/** Fields that one answer may be asked for. */
export const returnFieldsMax = 32

/** Rows of a whole query (`limit`). */
export const queryLimitMax = 1_000_000_000

/** Length of a cursor. */
export const cursorCharsMax = 4_096

/**
 * Rows that one answer looks at, shown or not, where they come in the order asked for: then the
 * page ends early, with a link to go on.
 */
export const scannedRowsMax = 50_000

/** Rows that must be looked at before the first is known: more of them is refused. */
export const sortedRowsMax = 100_000

/** Rows that are read in one step, after which others have their turn. */
export const chunkRows = 500

/**
 * Rows that a page scans in the order of their keys before it uses the index: where most rows
 * match, the page is full by then.
 */
export const probeRows = 200

/** It scans up to so many times more where that promises to fill the page. */
export const probeFactorMax = 6

/** Least number of keys in one read of an index value. */
export const mergeKeysMin = 4

/** A merge reads so many times the even share of a page from each index value. */
export const mergeKeysFactor = 1.5

/** Rows read beyond those that a page is expected to need. */
export const spareRows = 8

/** Rows scanned in one turn of the event loop. */
export const turnRows = 1_000

/** Rows, and characters, of one block of cached rows. */
export const blockRows = 128

export const blockCharsMax = 32 * 1024

/** Approximate bytes of a block beside its text and numbers. */
export const blockOverheadBytes = 400

/** Bytes of the cached rows of one table: some 1,300,000 rows of 60 characters. */
export const rowCacheBytesMax = 96 * 1024 * 1024

/** Rows of one read that fills a row cache. */
export const fillRows = 400

/** After each read the filling pauses for so many times its duration. */
export const fillRest = 2

/** How long the filling waits while rows change faster than it can read. */
export const fillPauseMs = 500

/** Changed ranges that one page reads into the cache. */
export const rowCacheLoadsMax = 4

/** Attempts of a change that others come before, each on the row as it is then. */
export const attemptsMax = 20

/** How long a query that was made without an account is kept, ms. */
export const anonymousQueryRetentionMs = 30 * 24 * 60 * 60 * 1000

/** How many of those one address may have at a time. */
export const anonymousQueriesMax = 1_000

/** How often those that are over are removed, ms, and how many in one step. */
export const expiredQueriesSweepMs = 10 * 60 * 1000

export const expiredQueriesPage = 200

/* Every bound of customers and of loading them. */

/** Characters of one row of a file. */
export const rowCharsMax = 64 * 1024

/** Columns of a CSV file. */
export const columnsMax = 64

/** Rows with a fault that are told, of those that were skipped. */
export const problemsMax = 100

/** Rows that one step of a load writes, unless the store takes fewer. */
export const loadBatchRows = 2_000

/** Changes that a new row comes to: its record, and its key in the index. */
export const changesPerRow = 2

/** A load under way that was not touched for this long has lost its node, ms. */
export const loadIdleMs = 60_000

/** Loads that have lost their node are looked for this often, ms. */
export const loadWatchMs = 30_000

/** How long it is told what became of a load, ms. */
export const loadRetentionMs = 7 * 24 * 60 * 60 * 1000

/** Loads that are looked at together. */
export const loadsPage = 100

/*
 * Every bound of the HTTP side. Bytes, counts and times, with the unit last in the name.
 * What an operator may change is repeated in the cluster configuration, which starts from these.
 */

/** Quarantined actors that a node tells of, one by one; it counts the others. */
export const quarantinesMax = 50

/** Origins that a node tells of, those in trouble first. */
export const originsMax = 5

/** Nodes whose figures are read at the same time. */
export const nodesReadMax = 16
