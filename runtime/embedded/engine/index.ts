/** The databases that the embedded store can use: RocksDB and LevelDB. */
export { acknowledgedPath, createAcknowledged, readAcknowledged } from "./acknowledgement.ts"
export { chooseEngine, databasePath, EngineDiffers, EngineMissing, engineOf, openDatabase,
  openViewDatabase, viewEngine, writeEngine } from "./engine-choice.ts"
export { asFailure, type ClearRequest, type Database, type EngineName, engineNames,
  type EngineSnapshot, engineTitles, type EngineWriter, isLocked, rootOf, type WriteRequest,
  type WriterEvents, type WriterReply } from "./engine.ts"
export type { VerifiedTables } from "./leveldb-files.ts"
export { firstKey, keysIn, pagesOf, readSpan } from "./spans.ts"
export { type BatchChange, WriteBatch } from "./write-batch.ts"
