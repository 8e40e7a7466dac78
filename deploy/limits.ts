/** Every bound of `restante doctor`. Units stand last in the names. */
/** Version of the format; a later one is refused. */
export const archiveFormatVersion = 1

/** Bytes of one line at most: a log item or state, as JSON, is shorter. */
export const lineBytesMax = 64 * 1024 * 1024

/** Bytes of the last line at most: counts of some kinds, and a checksum. */
export const trailerBytesMax = 64 * 1024

/** Lines are handed on when they are so many bytes together. */
export const writeBytes = 128 * 1024

/** Of gzip: what is much slower saves little. */
export const gzipLevel = 1

/** Actors of one group of commits, groups under way at once, and bytes of all that waits. */
export const groupActors = 250

export const groupsAtOnce = 4

export const archiveGroupBytesMax = 4 * 1024 * 1024

/** Items of one commit: all of them go into one atomic batch. */
export const commitItems = 400

/** Items that one commit removes at most. */
export const commitRemovals = 400

/** Bytes of the items of one commit or line, but for a single item that is larger. */
export const itemsBytes = 1024 * 1024

/** Records of one write. */
export const groupRecords = 250

/** Blobs up to so many bytes are written at once, so many of them. */
export const smallBlobBytes = 128 * 1024

export const smallBlobsAtOnce = 16

/** Blobs listed at once. */
export const blobsPage = 500

/** How often an actor is read anew whose blob was replaced meanwhile. */
export const blobTriesMax = 10

if (groupActors > 1_000 || commitItems + commitRemovals > 900) {
  throw new Error("deploy/limits.ts: a commit must fit into one batch")
}

/* Every bound of archives. Units stand last in the names. */

/** Open files that a busy node wants: a connection is one. */
export const filesWanted = 65_536

/** With fewer it refuses connections soon. */
export const filesMin = 1_024

/** Room on the disk of the store. */
export const roomWantedBytes = 5 * 1024 ** 3

export const roomMinBytes = 256 * 1024 ** 2

/** Memory that a node may use. */
export const memoryWantedBytes = 512 * 1024 ** 2

/** How far clocks may be apart: leases of nodes and signatures of pushes stand on them. */
export const clockWarnMs = 1_000

export const clockFailMs = 60_000

/** A clock before this is not set: ms since the epoch, 2026-01-01. */
export const clockEarliestMs = Date.UTC(2026, 0, 1)

/** Round trip to NATS; a commit takes at least one. */
export const natsRoundTripWarnMs = 20

/** `max_payload` of the servers: the largest document, as it is stored. */
export const natsPayloadWantedBytes = 1024 ** 2

/** How long an answer may take. */
export const askMs = 3_000

/** Characters of a token that nobody guesses. */
export const tokenCharactersMin = 22
