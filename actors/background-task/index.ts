/** Background tasks of a mailbox: eager fetches and receipts (protocol §1.2). */
export { backgroundTask } from "./actor.ts"
export { DroppedRequests } from "./dropped-requests.ts"
export { type BackgroundTaskDependencies, BackgroundTaskState, type CachedContent, cachedKey,
  cachedTable, type Documents } from "./protocol.ts"
