/** The runtime's only public surface. */
export type { Inspection, MessageStep, Quarantine, ReplyCallback } from "./activation/index.ts"
export { ActorDefect, type Address, address, type AnyBehavior, append, type AskFailure, AskTimeout,
  become, type Behavior, type BehaviorTable, BlobAborted, BlobMissing, BlobTooLarge, Decision,
  type DecisionContext, decodeStoredState, encodeStoredState, fromKey, fromSubject, isActorId,
  isRefusal, keyOf, LogConflict, type LogItem, MessageTooLarge, NoOwner, Overloaded, type Peers,
  placingPart, Quarantined, type Recall, type Refusal, refuse, RevisionConflict, shardOf, SHARDS,
  stay, StorageCorrupted, type StorageFailure, StorageFull, StorageLocked, StorageUnavailable,
  StoreFormatUnsupported, subjectOf, type Tagged, UnknownMessage, ValueTooLarge,
  type Variant } from "./actor/index.ts"
export type { Clocks } from "./clock.ts"
export { clusterPlacement, type ClusterPlacementOptions, type ClusterView, NodeNameTaken,
  type NodeStatusApi, type NodeView, Placement, singleNodePlacement } from "./cluster/index.ts"
export { actorLog, type ActorNodeOptions, actorSystem, type AnyActor, askActor, askPeer,
  defineActor, memory, type Store, type StorePorts } from "./definition/index.ts"
export { HmacSha256 } from "./hmac.ts"
export { type Limits, makeLimits } from "./limits.ts"
export { logFailure } from "./logged-failure.ts"
export { Histogram, type KindMetrics, type RuntimeMetrics } from "./metrics.ts"
export type { MessageObserver, Snapshot, SystemOptions } from "./node.ts"
export { type ActorPart, type BlobInfo, Blobs, type BlobsApi, byBytes, type ByteRange, type Commit,
  isLogEnd, type ItemsPart, makeMemoryView, type OpenView, type RecordChange, type RecordEntry,
  type RecordPart, type RecordRange, Records, type RecordsApi, recordsUpTo, Registry, Storage,
  type StorageApi, StoreContents, type StoreContentsApi, type Timer,
  Transport } from "./ports/index.ts"
export { type BlobCommit, commitBlob } from "./prepared-blob.ts"
export { type MessageTexts, observedStorageLayer, type RecordedCommit, type RecordedMessage,
  Recorder } from "./recording/index.ts"
export { System, type SystemApi } from "./system.ts"
export { knownTraceparent, type OpenSpan, parseTraceparent, type SpanAttributes, type SpanStart,
  type TraceContext, traceparentFrom, type Traces, withTraceparent } from "./tracing.ts"
