/** Every bound of archives. Units stand last in the names. */

/** Version of the format; a later one is refused. */
export const FORMAT = 1
/** Bytes of one line at most: a log item or state, as JSON, is shorter. */
export const LINE_BYTES_MAX = 64 * 1024 * 1024
/** Bytes of the last line at most: counts of some kinds, and a checksum. */
export const TRAILER_BYTES_MAX = 64 * 1024
/** Lines are handed on when they are so many bytes together. */
export const WRITE_BYTES = 128 * 1024
/** Of gzip: what is much slower saves little. */
export const GZIP_LEVEL = 1

/** Actors of one group of commits, groups under way at once, and bytes of all that waits. */
export const GROUP_ACTORS = 250
export const GROUPS_AT_ONCE = 4
export const GROUP_BYTES_MAX = 4 * 1024 * 1024
/** Items of one commit: all of them go into one atomic batch. */
export const COMMIT_ITEMS = 400
/** Items that one commit removes at most. */
export const COMMIT_REMOVALS = 400
/** Bytes of the items of one commit or line, but for a single item that is larger. */
export const ITEMS_BYTES = 1024 * 1024
/** Records of one write. */
export const GROUP_RECORDS = 250
/** Blobs up to so many bytes are written at once, so many of them. */
export const SMALL_BLOB_BYTES = 128 * 1024
export const SMALL_BLOBS_AT_ONCE = 16
/** Blobs listed at once. */
export const BLOBS_PAGE = 500
/** How often an actor is read anew whose blob was replaced meanwhile. */
export const BLOB_TRIES_MAX = 10

if (GROUP_ACTORS > 1_000 || COMMIT_ITEMS + COMMIT_REMOVALS > 900) {
  throw new Error("deploy/archive/limits.ts: a commit must fit into one batch")
}
