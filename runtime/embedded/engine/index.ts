/** The databases that the embedded store can use: RocksDB and LevelDB. */
export { acknowledgedPath, createAcknowledged, readAcknowledged } from "./acknowledgement.ts"
export { chooseEngine, databasePath, EngineDiffers, EngineMissing, engineOf, noteEngine,
  openDatabase, openViewDatabase, viewEngine } from "./engine-choice.ts"
export { asFailure, type ClearRequest, type Database, type EngineName, engineNames,
  type EngineSnapshot, engineTitles, type EngineWriter, firstKey, isLocked, readSpan, rootOf,
  type WriteRequest, type WriterEvents, type WriterReply } from "./engine.ts"
export { type BatchChange, WriteBatch } from "./write-batch.ts"
