/** Where requests come from, how many each client may cause, which are blocked, and disk space. */
export { BlockList, blocksTable } from "./block-list.ts"
export { Clients, networkOfText } from "./client-address.ts"
export { DiskFloor, type DiskFreeMin, floorBytes } from "./disk-floor.ts"
export { ActorListings, DocsSearches, RowScans, TextSearches } from "./long-reads.ts"
export type { NetworkPlace, NetworkPlaces } from "./network-places.ts"
export { OpenAnswers } from "./open-answers.ts"
export { Buckets, type Excess, makeRateLimiter, type PolicyUse, type Rate,
  type RateLimiter } from "./rate-limiter.ts"
export { RefusalCounter } from "./refusal-counter.ts"
export { type ReadResource, RemoteReader } from "./remote-reader.ts"
