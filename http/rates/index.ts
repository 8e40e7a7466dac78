/** Where requests come from, how many of them each client may cause, and the space of the disk. */
export { Clients } from "./client-address.ts"
export { DiskFloor, type DiskFreeMin, floorBytes } from "./disk-floor.ts"
export { type Excess, makeRateLimiter, type Rate, type RateLimiter } from "./rate-limiter.ts"
export { RefusalCounter } from "./refusal-counter.ts"
export { type ReadResource, RemoteReader } from "./remote-reader.ts"
