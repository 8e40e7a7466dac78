/** The runtime's only public surface. */
export * from "./actor.ts"
export * from "./address.ts"
export * from "./errors.ts"
export { type Limits, makeLimits } from "./limits.ts"
export type { KindMetrics, LatencyMetric, RuntimeMetrics } from "./measures.ts"
export type { SystemOptions } from "./node.ts"
export type { ReplyCallback } from "./pending.ts"
export { clustered, type ClusteredOptions } from "./placement/clustered.ts"
export { NodeNameTaken } from "./placement/entering.ts"
export type { NodeStatusApi } from "./placement/notices.ts"
export { alone, type ClusterView, type NodeView, Placement } from "./placement/placement.ts"
export { type BlobInfo, Blobs, type BlobsApi, type ByteRange } from "./ports/blobs.ts"
export {
  byBytes,
  type RecordChange,
  type RecordEntry,
  type RecordRange,
  Records,
  type RecordsApi
} from "./ports/records.ts"
export { Registry } from "./ports/registry.ts"
export { type LogItem, Storage, type Timer } from "./ports/storage.ts"
export { Transport } from "./ports/transport.ts"
export { makeMemoryView, type OpenView } from "./ports/view.ts"
export type { Snapshot } from "./standing.ts"
export type { Quarantine } from "./supervisor.ts"
export type { MessageStep } from "./surroundings.ts"
export { System, type SystemApi } from "./system.ts"
