/** Every bound of archives. Units stand last in the names. */

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
  throw new Error("deploy/archive/limits.ts: a commit must fit into one batch")
}
