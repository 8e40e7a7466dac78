/** Every bound of the embedded store. */

/** Content up to this many bytes is kept inside the database, larger content in a file. */
export const INLINE_BLOB_BYTES_MAX = 64 * 1024
/** Bytes read from a blob's file at once. */
export const BLOB_CHUNK_BYTES = 128 * 1024
/** A blob that was opened and not begun to be read is closed after this long, ms. */
export const BLOB_UNREAD_MS = 30_000

/** No further work joins a group that has reached this many bytes. */
export const GROUP_BYTES_MAX = 4 * 1024 * 1024
/** Bytes of the buffer that is shared with the writing thread; it grows when it must. */
export const SHARED_BYTES = 2 * GROUP_BYTES_MAX
/** Changes of one write of records. */
export const RECORD_CHANGES_MAX = 20_000
/** Actors whose revision and head are remembered, so that their next commit need not read. */
export const KNOWN_ACTORS_MAX = 20_000

/** Blocks of tables that are kept in memory, bytes. */
export const BLOCK_CACHE_BYTES = 16 * 1024 * 1024
/** RocksDB keeps up to 1.5 times this many bytes of what was written and is not in a table. */
export const MEMTABLE_BYTES = 64 * 1024 * 1024
/** The same of a view of a cluster's records, which is written without being flushed. */
export const VIEW_MEMTABLE_BYTES = 16 * 1024 * 1024

/** Characters of the answers to reads of records that are kept, and of one such answer. */
export const CACHED_CHARS_MAX = 2 * 1024 * 1024
export const CACHED_ANSWER_CHARS_MAX = 128 * 1024

/** Bytes of RocksDB's logs that are read at once before it reads them; whole blocks of 32 KiB. */
export const ROCKSDB_LOG_READ_BYTES = 1024 * 1024

/** LevelDB writes what was written into a table when its log has this many bytes; it keeps two. */
export const LEVELDB_BUFFER_BYTES = 16 * 1024 * 1024
/** LevelDB begins another table after this many bytes. */
export const LEVELDB_TABLE_BYTES = 8 * 1024 * 1024
/** Rows, and about the bytes, that LevelDB's iterator brings at once. */
export const LEVELDB_CHUNK_ROWS = 1_000
export const LEVELDB_CHUNK_BYTES = 256 * 1024

/** A read that takes longer goes on in the next turn of the event loop, ms. */
export const READ_SLICE_MS = 5
/** Wake-ups that are read in one step. */
export const WAKES_CHUNK = 500
/** Rows that are read at once when all of the store is read. */
export const CONTENTS_PAGE = 200
/** A log that may have as many items is read by itself. */
export const CONTENTS_ITEMS = 32
/** Items of a removed actor's log that are deleted in one step. */
export const SWEEP_ITEMS = 500

/** The count of acknowledged commits is flushed to disk this often, ms. */
export const ACKNOWLEDGED_SYNC_MS = 1_000
/** First and longest pause between attempts to go on after a failed write, ms. */
export const RECOVER_FIRST_MS = 100
export const RECOVER_LAST_MS = 5_000
/** Room that must be there, beside that of the write-ahead logs, to go on after a full disk. */
export const RECOVER_FREE_BYTES_MIN = 4 * 1024 * 1024
/** Written and flushed to see whether a disk takes anything. */
export const PROBE_BYTES = 4 * 1024

if (INLINE_BLOB_BYTES_MAX >= GROUP_BYTES_MAX || GROUP_BYTES_MAX > SHARED_BYTES) {
  throw new Error("runtime/embedded/limits.ts: the limits contradict each other")
}
