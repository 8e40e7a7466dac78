/**
 * Every bound of the HTTP side: bytes, counts and times. Each name ends in its unit. The cluster
 * configuration repeats the limits that an operator may change, with these defaults.
 */
import { answerCharsMax, contentOverheadBytes, passwordCheckMs,
  passwordWaitMs } from "../actors/index.ts"

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

/**
 * How many times larger than the largest document a notification may be as it is stored. `&` in
 * JSON is stored as `&amp;`, and an element beside the item with the namespaces of the root.
 */
export const storedFactorMax = 2

/** Bytes of a value that every store takes: the default `max_payload` of NATS, without headers. */
const storedValueBytesMax = 1023 * 1024

/** Bytes of a stored notification besides its document: its time, random part and digest. */
const storedHeaderBytesMax = 1024

/** Elements and pieces of text of one document together; attributes of one element. */
export const xmlNodesMax = 20_000
export const xmlAttributesMax = 64

/** Length of an element or attribute name. */
export const xmlNameCharsMax = 128

/** Values of one notification of JSON-LD, and their deepest nesting, the root counted. */
export const linkedDataValuesMax = 20_000
export const linkedDataDepthMax = 32

/** Length of the description that is taken from plain text, in characters. */
export const plainTextTitleCharsMax = 200

/** Tags of a deposit of plain text. */
export const plainTextTagsMax = 20

/** Greatest difference of the time in a webhook's signature from this node's clock. */
export const webhookAgeMsMax = 300_000

/** Lengths of the secret by which webhooks are signed. */
export const webhookSecretCharsMin = 8
export const webhookSecretCharsMax = 256

/** Length of a template of webhooks. */
export const webhookTemplateCharsMax = 1_024

/**
 * A longer text or picture is not shown on the page of its notification, which links to it; nor is
 * a message that takes longer to read.
 */
export const shownMessageBytesMax = 64 * 1024
export const shownPictureBytesMax = 4 * 1024 * 1024
export const shownMessageMs = 1_000

/**
 * A page of a mailbox shows how the messages of its notifications begin: of its first so many
 * rows, of text in this many bytes, and this many characters of it. The bytes have room for a
 * description, which is left out, and for the characters after it.
 */
export const previewRowsMax = 100
export const previewReadBytesMax = 2 * 1024
export const previewCharsMax = 200

/** Beginnings of texts that a node keeps for the pages of mailboxes. */
export const previewsKeptMax = 2_000

/** Length of the description that is taken from JSON-LD; nodes, and values of each, for it. */
export const linkedDataTitleCharsMax = 1000
export const linkedDataReadMax = 100

/** Length of one URI in a document or header. */
export const uriCharsMax = 2048

/**
 * The most that a session stores: its three answers with their references, each character in at
 * most 3 bytes of UTF-8, and what a content counts beside its bytes.
 */
export const sessionBytesMax = 3 * 3 * (answerCharsMax + uriCharsMax) + contentOverheadBytes

/**
 * Length of a Link field with the links to other representations, which are left out of a longer
 * one. nginx takes 4 KiB of header fields of an answer by default, Node.js 16 KiB.
 */
export const linkFieldCharsMax = 2000

/** Length of a mailbox name or other slug (protocol §0). */
export const slugCharsMax = 64

/** Request line and header fields together (protocol §0). */
export const headerBlockBytesMax = 16 * 1024

/** Of an Accept field negotiation reads so many characters, and media ranges. */
export const acceptCharsMax = 2048
export const acceptRangesMax = 64

/** Cached results of negotiation, for each list of offered types. */
export const acceptCacheMax = 256

/** Entity tags of one If-Match or If-None-Match field that the service compares. */
export const entityTagsMax = 64

/** Length of a request path, and its segments. */
export const pathCharsMax = 2048
export const pathSegmentsMax = 16

/** Body of an HTML form. */
export const formBytesMax = 64 * 1024

/** Fields of an HTML form or of a query. */
export const formFieldsMax = 128

/** Entries of one page of a listing: without `limit`, and the maximum. */
export const pageEntriesDefault = 100
export const pageEntriesMax = 1000

/** Longest wait of a long poll (`Prefer: wait`), in seconds as in the field. */
export const longPollSecondsMax = 60

/** Period of the comments on event streams. */
export const eventHeartbeatMs = 15_000

/** Unsent bytes at which the service disconnects the reader of an event stream. */
export const eventBufferBytesMax = 256 * 1024

/** Received bytes, not yet read by the handler, at which an upload is paused. */
export const uploadBufferBytesMax = 256 * 1024

/** Received bytes of a paused upload that stay in memory; further ones wait in a file. */
export const overrunBytesMax = 1024 * 1024

/**
 * Bytes of all uploads that wait in files: on a disk, and where the folder is memory. Those of one
 * client network may take half.
 */
export const spilledBytesMax = 1024 * 1024 * 1024
export const spilledMemoryBytesMax = 64 * 1024 * 1024

/**
 * What an upload may bring in one turn of the event loop. Its connection ends when it has brought
 * more bytes than this, and has also held the turn for longer.
 */
export const uploadTurnBytesMax = 256 * 1024 * 1024
export const uploadTurnMs = 1_000

/** Bytes of one read of an upload that waits in a file. */
export const spillPieceBytes = 256 * 1024

/** Unfinished bodies at a node, in bytes: all together, and of one client network. */
export const bodiesBytesMax = 40 * 1024 * 1024
export const networkBodiesBytesMax = 20 * 1024 * 1024

/** What an unfinished body counts beside its bytes: the connection, and its request. */
export const heldBodyBytes = 4 * 1024

/** The same of an upload, which its handler reads. */
export const heldUploadBytes = 64 * 1024

/** Blocks in which the service collects an unfinished document. */
export const bodyBlockBytes = 8 * 1024

/** Bytes of an upload that its stream and the store hold in memory, at most. */
export const storedUploadBytes = 160 * 1024

/**
 * The time of an unfinished body, from a used share of the budget on: a whole document has so long
 * to arrive, and an upload to bring {@link uploadBytesPerSecondMin}.
 */
export const bodyDeadlines = [
  { fromShare: 0.9, ms: 2_000 },
  { fromShare: 0.75, ms: 4_000 },
  { fromShare: 0.5, ms: 8_000 },
  { fromShare: 0, ms: 20_000 }
]

export const uploadBytesPerSecondMin = 4 * 1024

/** Bytes of answers after which, in one turn of the event loop, further answers wait. */
export const turnBytesMax = 256 * 1024

/** Event streams and long polls open at a node: all together, and of one client network. */
export const openAnswersMax = 10_000
export const openAnswersPerNetworkMax = 1_000

/** When a client whose event stream or long poll was refused may try again. */
export const openAnswerRetryMs = 10_000

/** How often the service looks for late bodies. */
export const bodySweepMs = 500

/** The native server closes a connection after 8 s of a body, unless it is told to wait. */
export const bodyKeepMs = 4_000

/** The service disconnects a reader of an answer that receives nothing for this long. */
export const readerStallMs = 30_000

/** What a reader of an answer that holds a place must receive; `readerStallMs` late at most. */
export const placeReaderBytesPerSecondMin = 32 * 1024

/** Answers that their clients have not read, in bytes: all together, and of one client network. */
export const unreadBytesMax = 128 * 1024 * 1024
export const networkUnreadBytesMax = 64 * 1024 * 1024

/** What an unread answer counts beside its body: the connection, and its request. */
export const heldAnswerBytes = 4 * 1024

/** What a streamed answer counts that waits for its client: a chunk, and the next one on NATS. */
export const heldStreamBytes = 264 * 1024

/**
 * A client must read so much a second, of an answer that the socket did not take at once. What it
 * reads faster gives it time for pauses, at most so long.
 */
export const answerBytesPerSecondMin = 1024
export const answerCreditMsMax = 120_000

/** How often the service looks for answers that are not read. */
export const answerSweepMs = 1_000

/** The native server ends a connection that takes nothing for 10 s, unless it is told to wait. */
export const answerKeepMs = 4_000

/** A body that is copied for a connection which ends with its answer; a larger one is not. */
export const lastAnswerBytesMax = 16 * 1024

/** The service reads and discards a refused body up to this size, so that the connection stays. */
export const refusedBodyBytesMax = 64 * 1024

/** Time for the last answers to leave the process before its connections are closed. */
export const drainGraceMs = 100

/** `Retry-After` of 503, in seconds: overload, a quarantined actor, an upgrade that goes on. */
export const overloadedRetrySeconds = 1
export const quarantinedRetrySeconds = 60
export const upgradeRetrySeconds = 60

/** Clients of each kind that the page of limits shows, and those among which it finds them. */
export const busiestShownMax = 20
export const busiestScannedMax = 10_000

/** Exports of accounts at one node at a time. */
export const exportsAtOnceMax = 4

/** Notifications, or other resources, that an export reads at a time. */
export const exportPage = 16

/** Bytes of content in one line of an export; a multiple of 3, so that base64 has no padding. */
export const exportLineBytes = 48 * 1024

/** Length of an Idempotency-Key. */
export const idempotencyKeyCharsMax = 255

/** Characters of an Idempotency-Key without an account: 128 random bits as base64url. */
export const anonymousKeyCharsMin = 22

/** What a key counts for the network of a client without an account; a longer answer, more. */
export const keyRecordBytes = contentOverheadBytes

/** The pauses before each further try to end an attempt whose store failed. */
export const endingPausesMs = [500, 1_000, 2_000, 4_000, 8_000, 16_000]

/** Length of a message or mailbox password. */
export const passwordCharsMax = 256
export const passwordCharsMin = 16

/**
 * Valid tokens, or right message passwords, and addresses that sent wrong credentials, in the
 * credential cache of a node.
 */
export const validTokensMax = 20_000
export const suspectAddressesMax = 20_000

/** A node that could not record the use of a token tries again after this time. */
export const tokenUseAttemptMs = 60_000

/** Rate limit buckets of a node, for each policy; it drops the least recently used. */
export const rateBucketsMax = 200_000

/**
 * A request counts for the account of its token if the token was valid within this time, and its
 * document as one more request for each so many bytes.
 */
export const countedTokenMs = 60_000
export const documentBytesPerRequest = 4 * 1024

/** Addresses of one X-Forwarded-For field that the service reads, from its end. */
export const forwardedMax = 16

/** Characters of a browser's name in the list of those that are signed in. */
export const browserAgentCharsMax = 160

/** Characters of the path to which a browser returns after its sign-in. */
export const returnPathCharsMax = 2048

/** A page waits this long to learn who is signed in, and for the mailboxes that it offers. */
export const browserLookupMs = 1000

/** Length of a token's name, and how long a token may be valid. */
export const tokenLabelCharsMax = 100
export const tokenLifetimeMaxMs = 10 * 365 * 24 * 60 * 60 * 1000

/** Records of tokens that are removed together. */
export const tokenRecordsPage = 100

/** Blobs that one step of the blob garbage collection checks. */
export const sweepPageBlobs = 500

/** Owners that the blob garbage collection asks at once. */
export const sweepAsksInFlight = 8

/** Length of a stored header value, such as Content-Type. */
export const headerValueCharsMax = 512

/** A feed has a date when its last entry is this old: dates are whole seconds, clocks differ. */
export const datedAfterMs = 5_000

/** Log numbers that a page of the newest, and of a search, scans backwards; characters of both. */
export const latestScannedMax = 10_000
export const searchScannedMax = 2_000
export const searchScannedCharsMax = 16 * 1024 * 1024

/**
 * Stored characters of the notifications or receipts on one page; the first is on it whatever its
 * length. Beyond the first ones each tag counts for many, since it takes as long to read.
 */
export const pageCharsMax = 1024 * 1024
export const pageFreeTagsChars = pageCharsMax / 16
export const pageTagChars = 32

/** One read for a page: its items, and characters that one answer of every store has room for. */
export const pageReadItems = 128
export const answerOfStoreCharsMax = pageCharsMax / 4

/** How often a page is read whose reads have a removal between them. */
export const mixedPageReadsMax = 3

/** Length of the text that a listing is searched for. */
export const searchCharsMax = 200

/** Log items that the search for a keyed deposit reads, if the deposit was stored for certain. */
export const keyedSearchItemsMax = 100_000

/** The same if the outcome of the earlier attempts is indeterminate. */
export const indeterminateSearchItemsMax = 10_000

/** Log items that one read of this search returns. */
export const keyedSearchPage = 100

/**
 * How much the clocks of two nodes may differ: the search also reads items that are this much older
 * than the first use of the key.
 */
export const keyedSearchClockSkewMs = 60 * 60 * 1000

/** Size of the cache of rendered mailbox listings. */
export const listingCacheBytesMax = 16 * 1024 * 1024

/** The listings made last that a node remembers: one of them that is made again is cached. */
export const madeListingsMax = 512

/**
 * Time, in milliseconds, for which readers of a cached listing cause no further report, once the
 * mailbox has recorded it as retrieved.
 */
export const retrievalRecordedMs = 60_000

/** Paths whose resource a node remembers, and its mailbox with it, of those requested last. */
export const knownPathsMax = 1_000

/**
 * Length of what the values of a webhook add to a template, together. It is above `uriCharsMax`: a
 * link that is cut off is too long to be one, and does not lead elsewhere.
 */
export const webhookValuesCharsMax = 2 * uriCharsMax

/** Length of a mailbox's title. */
export const titleCharsMax = 200

/** Items that an event stream or a search in a log reads at a time. */
export const eventItemsMax = 100

/** Stored characters that an event stream reads at a time; the first item whatever its length. */
export const eventReadCharsMax = 64 * 1024

/**
 * A long poll or event stream reads again after this time, in case a hint was lost. It also checks
 * the credentials of its client again.
 */
export const openAnswerRecheckMs = 30_000

/** Actors that one listing asks concurrently. */
export const askedAtOnceMax = 16

/** Length of `contains` in a cabinet's query. */
export const containsCharsMax = 200

/** Notifications that one answer of a cabinet scans, whether they match or not. */
export const cabinetScanItemsMax = 10_000

/** Stored characters of the notifications that one answer of a cabinet scans. */
export const cabinetScanCharsMax = 4 * 1024 * 1024

/**
 * Stored characters after which the scan of a cabinet lets other work go on: to parse as many takes
 * tens of milliseconds, if they are elements without text.
 */
export const cabinetTurnCharsMax = 64 * 1024

/** The fewest notifications that a cabinet reads from one mailbox in one request. */
export const cabinetChunkItemsMin = 10

/** Notifications of an outgoing mailbox that one request asks, and entries that it scans. */
export const outgoingAskedMax = 1000
export const outgoingScannedMax = 10_000

/** The fewest entries of an outgoing mailbox that a filtered listing reads in one request. */
export const outgoingEntriesMin = 100

/** Longest time from the entry of a notification to its queuing. */
export const queueDelayMaxMs = 60_000

/** After this time the service removes an entry whose notification was never queued. */
export const abandonedEntryMs = 24 * 60 * 60 * 1000

/** Least time between two events of one notification's stream, which combine all changes. */
export const statusEventPauseMs = 100

/** How long the answer to a test event waits for its result, and the time between two looks. */
export const testAnswerWaitMs = 10_000
export const testPollMs = 100

/** Body of a push whose signature is checked, in characters. */
export const checkedBodyCharsMax = 131_072

/** How long a request waits until all nodes know its messages, and how often it looks. */
export const formatAwaitMs = 5_000
export const formatPollMs = 50

/** How often an open page checks its entity tag, and the least time between reads at events. */
export const pageRefreshMs = 3_000
export const pageStreamRefreshMs = 300

/** How long a page of notifications shows what was done. */
export const pageNoticeMs = 8_000

/** How long a reader may undo a removal on a page, after the last one. */
export const removalUndoMs = 8_000

/** Removals that wait on a page at once; the next one sends them. */
export const pageRemovalsMax = 20

/** How often an open page says again how long ago its times are. */
export const relativeTimesMs = 30_000

/** Limits of a WebSub subscriber's choices (§5.1): bytes of its secret, seconds of its lease. */
export const subscriberSecretBytesMax = 199
export const leaseSecondsDefault = 10 * 24 * 60 * 60
export const leaseSecondsMax = 30 * 24 * 60 * 60

/** Addresses of clients and proxies that a node has parsed and keeps. */
export const knownAddressesMax = 10_000

/** How often a node reads the free space of its disk; also where it matters for metrics alone. */
export const diskCheckMs = 5_000
export const diskShownMs = 60_000

/** When `/admin` warns: free space of the disk in floors, content without an account in percent. */
export const lowDiskFloors = 2
export const fullQuotaPercent = 90

/** Bytes that a body without a length reserves at first; then twice as much each time. */
export const reservationBytesMin = 1024 * 1024

/** An upload renews a reservation of this age. */
export const reservationRenewMs = 20 * 60_000

/** Days for which the service knows what networks have published, before today. */
export const usageDaysKept = 1

/** Recipients of one notification at one foreign origin. */
export const originRecipientsMax = 100

/** Size of the text that an `href` answer refers to, and the number of references to follow. */
export const referredBytesMax = 8 * 1024
export const referenceHopsMax = 4

/** References to other services that clients of one network without an account may cause. */
export const referencesPerNetwork = { quota: 10, windowMs: 60_000 }

/** References to other services that one account may cause. */
export const referencesPerAccount = { quota: 60, windowMs: 60_000 }

/** `max-age` of a static file, and of one whose name changes with its content. */
export const fixedMaxAgeSeconds = 24 * 60 * 60
export const hashedMaxAgeSeconds = 365 * fixedMaxAgeSeconds

/** How long a `security.txt` is valid from when it was made (RFC 9116 §2.5.5). */
export const securityTextValidMs = 365 * 24 * 60 * 60_000

/** How long one `security.txt` is served: all nodes make it again at the same times. */
export const securityTextAgeMaxMs = 24 * 60 * 60_000

/* Tokens of an external issuer. */

/** A key set, in bytes, and its keys. */
export const keySetBytesMax = 256 * 1024
export const keysMax = 100

/** Length of an issuer's metadata document. */
export const metadataCharsMax = 256 * 1024

/** Age at which the service fetches the keys of an issuer again. */
export const keysFreshMs = 10 * 60_000

/** Age up to which it uses the keys while that fails; then it can check no token. */
export const keysStaleMs = 60 * 60_000

/** Least time between two fetches of keys. */
export const keysPauseMs = 10_000

/** Cached results of token checks, until the tokens expire. */
export const verifiedTokensMax = 10_000

/** Length of the name of a claim, and the dots in it. */
export const claimPathCharsMax = 200
export const claimPathDotsMax = 8

/** Roles of one token that the service reads. */
export const claimedRolesMax = 1_000

/** Largest tolerance for the issuer's clock. */
export const clockToleranceMaxMs = 5 * 60_000

/* Queries, and the tables that they read. */

/** Conditions of one query, and levels of their nesting. */
export const conditionNodesMax = 100
export const conditionDepthMax = 16

/** Characters of a value in a condition; names of fields in `return`. */
export const valueCharsMax = 200
export const returnFieldsMax = 32

/** Rows of a whole query (`limit`). */
export const queryLimitMax = 1_000_000_000

/** Length of a cursor. */
export const cursorCharsMax = 4_096

/** Rows that one answer scans, matching or not; then its page ends early, and links to the next. */
export const scannedRowsMax = 50_000

/** Rows that a query may sort; the service refuses one that needs more. */
export const sortedRowsMax = 100_000

/** Rows that a query reads in one step; then it yields to other requests. */
export const chunkRows = 500

/**
 * Rows that a page scans in the order of their keys before it uses the index: where most rows
 * match, the page is full by then.
 */
export const probeRows = 200

/** It scans up to this many times more rows if that promises to fill the page. */
export const probeFactorMax = 6

/** Least number of keys in one read of an index value. */
export const mergeKeysMin = 4

/** A merge reads this many times the even share of a page from each index value. */
export const mergeKeysFactor = 1.5

/** Rows read in addition to the expected rows of a page. */
export const spareRows = 8

/** Reads of one sort that a node runs at once (`long-reads.ts`): in all, and of one network. */
export const longReadsMax = 64
export const longReadsPerNetworkMax = 16

/** The same of searches in `/docs`, which strangers make. */
export const docsSearchesMax = 16
export const docsSearchesPerNetworkMax = 4

/** When a client whose read was refused may try again. */
export const longReadRetryMs = 1_000

/** Rows scanned in one turn of the event loop. */
export const turnRows = 1_000

/** Conditions that one query compares with rows in one turn of the event loop. */
export const turnComparisonsMax = 20_000

/** Rows, and characters, of one block of cached rows. */
export const blockRows = 128
export const blockCharsMax = 32 * 1024

/** Approximate bytes of a block beside its text and numbers. */
export const blockOverheadBytes = 400

/** Bytes of the cached rows of one table: some 1,300,000 rows of 60 characters. */
export const rowCacheBytesMax = 96 * 1024 * 1024

/** Rows that a step of filling a row cache reads, and the pause after it, in its durations. */
export const fillRows = 400
export const fillRest = 2

/** How long the filling waits while rows change faster than it can read. */
export const fillPauseMs = 500

/** Changed ranges that one page reads into the cache. */
export const rowCacheLoadsMax = 4

/** Attempts of a compare-and-set that other writers precede; each reads the row again. */
export const attemptsMax = 20

/** Retention of a query that has no owner. */
export const anonymousQueryRetentionMs = 30 * 24 * 60 * 60 * 1000

/** Queries without an owner that one client network may have at a time. */
export const anonymousQueriesMax = 1_000

/** How often the service removes expired records: queries, and records of requests. */
export const expirySweepMs = 10 * 60 * 1000

/** How many of them one write removes. */
export const expiryPage = 200

/* Customers, and loads of customers. */

/** Characters of one row of a file. */
export const rowCharsMax = 64 * 1024

/** Columns of a CSV file. */
export const columnsMax = 64

/** Skipped rows whose problems a load reports. */
export const problemsMax = 100

/** Rows that one step of a load writes, unless the store takes fewer. */
export const loadBatchRows = 2_000

/** Changes of a new row: its record, and its key in the index. */
export const changesPerRow = 2

/** How long an upload tries to find out whether the store has its load, and the pause between. */
export const loadSettleMs = 5_000
export const loadSettlePauseMs = 100

/** The pause before a node continues a load whose write failed. */
export const loadRetryMs = 1_000

/** After this time without progress, another node continues a load. */
export const loadIdleMs = 60_000

/** How often a node searches for loads without progress. */
export const loadWatchMs = 30_000

/** Retention of the record of a completed load. */
export const loadRetentionMs = 7 * 24 * 60 * 60 * 1000

/** Loads that the service reads in one step. */
export const loadsPage = 100

/* Blocks and reports. */

/** Blocks of the service, which each node has in memory. */
export const serviceBlocksMax = 1_000

/** After a failed read of the blocks a node reads them again. */
export const blockRetryMs = 1_000

/** Reports that the service keeps (it removes older ones), and that `/admin` counts. */
export const reportsMax = 1_000
export const openReportsCountedMax = 100
export const reportReasonCharsMax = 1_000
export const reportHostsMax = 20

/** Reports that one account or client network may send. */
export const reportsPerClient = { quota: 20, windowMs: 60 * 60 * 1000 }

/* The audit log. */

/** Entries that one read of the audit log returns, and that one page of it searches. */
export const auditReadItems = 500
export const auditScannedMax = 20_000

/** Entries in one page of the chain, and characters after which a page ends. */
export const auditChainItemsMax = 1_000

/** Clients whose refused admin operations a node counts, and for how long. */
export const refusalClientsMax = 10_000
export const refusalWindowMs = 60 * 60 * 1000

/** Refusals that a node writes to the audit log in that time. */
export const auditedRefusalsMax = 100

/* The cluster page. */

/** Quarantined actors that a node lists; it only counts the others. */
export const quarantinesMax = 50

/** Origins that a node lists, those with an open circuit first. */
export const originsMax = 5

/** Nodes whose figures the service reads concurrently. */
export const nodesReadMax = 16

/* The history of a node. */

/** How often a node looks for events of the cluster. */
export const observationMs = 1_000

/** The time between two samples of a node's figures; samples that it keeps: an hour. */
export const sampleMs = 10_000
export const samplesMax = 360

/** The least time that its charts are wide. */
export const shownMsMin = 10 * 60_000

/** Events that a node keeps. */
export const eventsMax = 500

/** Quarantines, and ends of them, that one look adds to the time line, and that a node keeps. */
export const quarantineEventsMax = 20
export const quarantineEventsKeptMax = 100

/**
 * After NATS was away, the members of the cluster are seen again within this time: each renews its
 * membership every second, once it has a connection.
 */
export const viewSettlesMs = 15_000

/** Events that the page of the history shows. */
export const shownEventsMax = 50

/* The inspector of actors. */

/** Log items of an actor, recorded commits of one, and messages of a node that it shows. */
export const inspectedItemsMax = 20
export const inspectedCommitsMax = 50
export const inspectedMessagesMax = 200

/** Items that it reads at once, each as large as a message maybe; characters shown of one. */
export const inspectedReadsMax = 4
export const inspectedItemCharsMax = 4 * 1024

/* The documentation. */

/** A search: its characters, terms that count, places shown, and what one turn compares. */
export const docsQueryCharsMax = 200
export const docsTermsMax = 8
export const docsMatchesMax = 50
export const docsTurnCharsMax = 1024 * 1024

/** What must hold between bounds, in words. */
const relations: ReadonlyArray<readonly [holds: boolean, relation: string]> = [
  [pageEntriesDefault <= pageEntriesMax, "pageEntriesDefault <= pageEntriesMax"],
  [pathCharsMax + acceptCharsMax < headerBlockBytesMax, "path and Accept fit the header block"],
  [eventHeartbeatMs < longPollSecondsMax * 1000, "heartbeat is shorter than a long poll"],
  [
    eventBufferBytesMax < networkUnreadBytesMax && networkUnreadBytesMax <= unreadBytesMax,
    "a network has room for many unread answers, and others beside it"
  ],
  [
    networkBodiesBytesMax < spilledMemoryBytesMax / 2 && uploadTurnBytesMax < spilledBytesMax / 2,
    "files take more of one network than memory does, and more than one turn"
  ],
  [
    storedFactorMax * defaultDocumentLimits.documentBytesMax + storedHeaderBytesMax <=
      storedValueBytesMax,
    "every store takes a notification of the default limits"
  ],
  [2 * passwordWaitMs < passwordCheckMs, "a password still counts while it is checked"],
  [keysPauseMs < keysFreshMs, "the pause between fetches is shorter than keys are fresh"],
  [keysFreshMs < keysStaleMs, "keys are fetched again before they become stale"],
  [
    conditionNodesMax < turnComparisonsMax / spareRows,
    "a turn tests some rows with the most conditions"
  ]
]

for (const [holds, relation] of relations) {
  if (!holds) throw new Error(`http/limits.ts: ${relation} does not hold`)
}
