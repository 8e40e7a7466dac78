/**
 * Delivery: what an attempt to reach another service comes to, and what makes attempts. Every
 * outbound request of the service goes through an {@link Outbound} (protocol §5).
 */
import { type Effect, Schema } from "effect"
import { Count } from "../schemas.ts"

/**
 * How one attempt turned out. `problem` is for people: it names the fault, never what was found
 * inside the network, and no secret.
 */
export const DeliveryOutcome = Schema.Union([
  /** 2xx. `location` is the absolute URI of the answer's Location, when it has one. */
  Schema.TaggedStruct("Delivered", { code: Count, location: Schema.optionalKey(Schema.String) }),
  /** It ends here: 410, other 4xx, a redirect that is not followed, a target that is forbidden. */
  Schema.TaggedStruct("Refused", { code: Schema.optionalKey(Count), problem: Schema.String }),
  /** To be tried again: 408, 425, 429, 5xx, transport faults. Retry-After as ms from now. */
  Schema.TaggedStruct("Faulted", {
    code: Schema.optionalKey(Count),
    problem: Schema.String,
    retryAfterMs: Schema.optionalKey(Count)
  }),
  /** No attempt was made: the origin has its fill, or its circuit is open. Come back then. */
  Schema.TaggedStruct("Deferred", { untilMs: Count })
])

export type DeliveryOutcome = typeof DeliveryOutcome.Type

/** What is sent; `headers` has neither Host, nor Content-Length, nor credentials. */
export interface OutboundContent {
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** A letter that is made when it is sent, so that a request that waits holds nothing. */
export interface DeferredContent {
  /**
   * Asked when the request's turn has come, on each hop: undefined gives the request up, and the
   * outcome is Refused, "no longer wanted". It does not throw.
   */
  readonly letter: () => OutboundContent | undefined | Effect.Effect<OutboundContent | undefined>
}

/** A request with a body. */
export type Posting = (OutboundContent | DeferredContent) & {
  readonly uri: string
  /** Whether a 405 or 415 makes it look for a mailbox at the target (rel=mailbox). */
  readonly discovers?: boolean
  /**
   * The letter as JSON-LD, for a target that takes nothing else: an inbox of Linked Data
   * Notifications, by its Accept-Post or found as rel=ldp#inbox. Only of a post that discovers.
   */
  readonly linkedData?: (letter: OutboundContent) => OutboundContent
  /**
   * Takes the letter to a mailbox that was found without a request, when that is one of this
   * service; undefined for all others. Only of a post that discovers.
   */
  readonly handsOver?: (uri: string) => Effect.Effect<DeliveryOutcome> | undefined
}

/** What a GET found. */
export interface Fetched {
  /** The final URI, after redirects. */
  readonly uri: string
  readonly code: number
  /** Content-Type as it was sent; `application/octet-stream` without. */
  readonly type: string
  readonly bytes: Uint8Array
}

export interface Fetching {
  readonly uri: string
  readonly headers?: Readonly<Record<string, string>>
  /** More than so many bytes, after decompression, are a refusal. */
  readonly bytesMax: number
}

/** A GET that has 2xx gives what it found; all else is as with an attempt, never Delivered. */
export type FetchOutcome =
  | { readonly _tag: "Fetched"; readonly fetched: Fetched }
  | Exclude<DeliveryOutcome, { readonly _tag: "Delivered" }>

/**
 * Requests to other services under the rules of protocol §5: addresses checked and pinned, each
 * hop anew, time and bytes bounded, attempts per origin bounded, a circuit breaker per origin.
 * Its effects never fail and are interruptible.
 */
export interface Outbound {
  readonly post: (posting: Posting) => Effect.Effect<DeliveryOutcome>
  readonly get: (fetching: Fetching) => Effect.Effect<FetchOutcome>
}
