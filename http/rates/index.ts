/** Where requests come from, and how many of them each client may cause. */
export { Clients } from "./client-address.ts"
export { type Excess, makeRateLimiter, type Rate, type RateLimiter } from "./rate-limiter.ts"
export { RefusalCounter } from "./refusal-counter.ts"
export { type ReadResource, RemoteReader } from "./remote-reader.ts"
