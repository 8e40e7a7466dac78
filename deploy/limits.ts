/** The limits of archives, `restante doctor`, the files of the command line, and telemetry. */

/** Version of the format of archives; a later one is refused. */
export const archiveFormatVersion = 1

/** Largest line of an archive: a log item or a state, as JSON, is smaller. */
export const lineBytesMax = 64 * 1024 * 1024

/** Largest last line of an archive: the counts of some kinds, and a checksum. */
export const trailerBytesMax = 64 * 1024

/** Largest file of a secret of the command line. */
export const secretFileBytesMax = 4 * 1024

/** Largest push whose signature the command line checks, with its header fields. */
export const checkedRequestBytesMax = 64 * 1024 * 1024

/** Largest file of contexts of the command line: hundreds of them. */
export const contextsBytesMax = 256 * 1024

/** Lines are written together in chunks of this size. */
export const writeBytes = 128 * 1024

/** Compression of archives: higher levels are much slower and save little. */
export const gzipLevel = 1

/** Actors of one group of commits, concurrent groups, and bytes of all groups. */
export const groupActors = 250

export const concurrentGroups = 4

export const archiveGroupBytesMax = 4 * 1024 * 1024

/** Items of one commit; they must fit in one atomic batch. */
export const commitItems = 400

/** Items that one commit removes. */
export const commitRemovals = 400

/** Bytes of the items of one commit or line, except for a single larger item. */
export const itemsBytes = 1024 * 1024

/** Records of one write. */
export const groupRecords = 250

/** Blobs up to this size are written concurrently. */
export const smallBlobBytes = 128 * 1024

export const concurrentSmallBlobs = 16

/** Blobs of one page of the listing. */
export const blobsPage = 500

/** Reads of an actor whose blob changes during each read. */
export const blobReadsMax = 10

if (groupActors > 1_000 || commitItems + commitRemovals > 900) {
  throw new Error("deploy/limits.ts: a commit must fit in one batch")
}

/** Open files that a busy node needs, as every connection is one; below the minimum it fails. */
export const filesWanted = 65_536

export const filesMin = 1_024

/** Free space on the disk of the store. */
export const diskWantedBytes = 5 * 1024 ** 3

export const diskMinBytes = 256 * 1024 ** 2

/** Memory of a node. */
export const memoryWantedBytes = 512 * 1024 ** 2

/** By how much the heap may grow after a collection until the next one, in percent. */
export const heapGrowthPercent = 50

/** Offset of clocks: leases of nodes and signatures of pushes depend on them. */
export const clockWarnMs = 1_000

export const clockFailMs = 60_000

/** An earlier clock is not set: ms since the epoch, 2026-01-01. */
export const clockEarliestMs = Date.UTC(2026, 0, 1)

/** Round trip to NATS; a commit takes at least one. */
export const natsRoundTripWarnMs = 20

/** `max_payload` of the servers: the largest stored document. */
export const natsPayloadWantedBytes = 1024 ** 2

/** Time for a response of the service. */
export const requestMs = 3_000

/** Of an answer that may be of another service, so much is read. */
export const answerBytesRead = 64 * 1024

/** Characters of an `ADMIN_TOKEN` that nobody guesses: 128 random bits as base64 (protocol §7). */
export const adminTokenCharsMin = 22

/** Largest file of keys of stored secrets. */
export const secretKeyFileBytesMax = 16 * 1024

/** Ids of keys of stored secrets that a cluster remembers: more than a keyring has. */
export const announcedKeysMax = 32

/** Files of the data folder that others may read, of which one warning has the names. */
export const openEntriesNamedMax = 5

/** Interval of the removal of orphaned blobs in a cluster. */
export const orphanSweepIntervalMs = 6 * 3_600_000

/** Spans that have ended and wait for the collector, at most; about 1 KiB each. */
export const spansHeldMax = 8_192

/** Spans of one request to the collector, and how long the first of them waits at most. */
export const spanBatchMax = 256

export const spanExportMs = 5_000

/** Time for one batch, with its repetitions. */
export const collectorTimeoutMs = 10_000

/** How often a batch is repeated, and the wait before each repetition. */
export const collectorRetries = 2

export const collectorRetryMs = 1_000

/** How long a node that stops waits for the last spans, and for the last metrics. */
export const exportsEndMs = 3_000

/** Characters of a column in a table: a longer description is cut, a longer URI is whole. */
export const columnCharsMax = 60

/** Tags of a notification that `restante send` accepts, as many as a deposit of text may have. */
export const messageTagsMax = 20

if (spanBatchMax > spansHeldMax || collectorRetries * collectorRetryMs >= collectorTimeoutMs) {
  throw new Error("deploy/limits.ts: a batch of spans must fit, and must have time for its retries")
}
