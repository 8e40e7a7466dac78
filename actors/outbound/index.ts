/** The one client for every HTTP request to another service (protocol §5). */
export { makeOutbound, type OutboundService, readerOf } from "./client.ts"
export { addressRules } from "./destination.ts"
export { notAllowed } from "./problems.ts"
export { type BodyMemory, type BodySource, type Deferred, type DeliveryFailure, DeliveryOutcome,
  type ExchangeObserver, ExchangeRecord, type Fetched, type FetchOutcome, type Outbound,
  type OutboundContent, type Reach, type RequestBounds, type RequestCause,
  type TextContent } from "./protocol.ts"
export { retryAfterMaxMs } from "./response.ts"
export { deferredOutcome, dueAtMs, type Schedule, waitMs } from "./schedule.ts"
export { hubSignature, webhookHeaders } from "./signatures.ts"
