/** Every bound of the embedded store. */

/** Content up to this many bytes is kept inside the database, larger content in a file. */
export const inlineBlobBytesMax = 64 * 1024
/** Bytes read from a blob's file at once. */
export const embeddedBlobChunkBytes = 128 * 1024
/** A blob that was opened and not begun to be read is closed after this long, ms. */
export const blobUnreadMs = 30_000

/** No further work joins a group that has reached this many bytes. */
export const groupBytesMax = 4 * 1024 * 1024
/** Bytes of the buffer that is shared with the writing thread; it grows when it must. */
export const sharedBytes = 2 * groupBytesMax
/** Changes of one write of records. */
export const recordChangesMax = 20_000
/** Actors whose revision and head are remembered, so that their next commit need not read. */
export const knownActorsMax = 20_000

/** Blocks of tables that are kept in memory, bytes. */
export const blockCacheBytes = 16 * 1024 * 1024
/** RocksDB keeps up to 1.5 times this many bytes of what was written and is not in a table. */
export const memtableBytes = 64 * 1024 * 1024
/** The same of a view of a cluster's records, which is written without being flushed. */
export const viewMemtableBytes = 16 * 1024 * 1024

/** Characters of the answers to reads of records that are kept, and of one such answer. */
export const cachedCharsMax = 2 * 1024 * 1024
export const cachedAnswerCharsMax = 128 * 1024

/** Bytes of RocksDB's logs that are read at once before it reads them; whole blocks of 32 KiB. */
export const rocksdbLogReadBytes = 1024 * 1024

/** LevelDB writes what was written into a table when its log has this many bytes; it keeps two. */
export const leveldbBufferBytes = 16 * 1024 * 1024
/** LevelDB begins another table after this many bytes. */
export const leveldbTableBytes = 8 * 1024 * 1024
/** Rows, and about the bytes, that LevelDB's iterator brings at once. */
export const leveldbChunkRows = 1_000
export const leveldbChunkBytes = 256 * 1024

/** A read that takes longer goes on in the next turn of the event loop, ms. */
export const readSliceMs = 5
/** Wake-ups that are read in one step. */
export const wakesChunk = 500
/** Rows that are read at once when all of the store is read. */
export const contentsPage = 200
/** A log that may have as many items is read by itself. */
export const contentsItems = 32
/** Items of a removed actor's log that are deleted in one step. */
export const sweepItems = 500

/** The count of acknowledged commits is flushed to disk this often, ms. */
export const acknowledgedSyncMs = 1_000
/** First and longest pause between attempts to go on after a failed write, ms. */
export const recoverFirstMs = 100
export const recoverLastMs = 5_000
/** Room that must be there, beside that of the write-ahead logs, to go on after a full disk. */
export const recoverFreeBytesMin = 4 * 1024 * 1024
/** Written and flushed to see whether a disk takes anything. */
export const probeBytes = 4 * 1024

if (inlineBlobBytesMax >= groupBytesMax || groupBytesMax > sharedBytes) {
  throw new Error("runtime/embedded/limits.ts: the limits contradict each other")
}
