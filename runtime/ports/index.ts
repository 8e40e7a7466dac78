/** The contracts that a backend implements. */
export { type BlobBytes, type BlobInfo, Blobs, type BlobsApi, type ByteRange } from "./blobs.ts"
export { type ActorPart, type ActorRead, type ActorSource, type ItemsPart, readActor,
  type RecordPart, StoreContents, type StoreContentsApi } from "./contents.ts"
export { Pings, type PingsApi, PingUnanswered } from "./pings.ts"
export { recordsUpTo } from "./record-format.ts"
export { RecordTables } from "./record-table.ts"
export { assertExpected, byBytes, type RecordChange, type RecordEntry, type RecordRange, Records,
  type RecordsApi, type RecordsInMemory, Watchers } from "./records.ts"
export { Registry, type RegistryApi, type RegistryEntry, RegistryMoved } from "./registry.ts"
export { assertCommit, type Commit, type CommitOutcome, conflictOf, firstChars, isLogEnd, noSignals,
  type ReportOutcome, soleStream, Storage, type StorageApi, type StoredActor, type StoredTimer,
  type Timer, type TimerCursor, timerMsMax, type TimerPage } from "./storage.ts"
export { type HintListener, type RequestDone, type RequestFailure, type Serve, type ShardClaim,
  type ShardTenure, type Traffic, Transport, type TransportApi } from "./transport.ts"
export { makeMemoryView, type OpenView, type ViewApi } from "./view.ts"
