/**
 * Outbound HTTP: the requests, and the outcome of one attempt. Every request of the service to
 * another service goes through an {@link Outbound} (protocol §5).
 */
import { type Effect, Schema } from "effect"
import { Count } from "../schemas.ts"

/**
 * The outcome of one attempt. `problem` is for people: it names the failure. It holds no secret
 * and nothing that was found inside the network.
 */
export const DeliveryOutcome = Schema.Union([
  /** 2xx. `location` is the absolute URI of the response's Location, if there is one. */
  Schema.TaggedStruct("Delivered", { code: Count, location: Schema.optionalKey(Schema.String) }),
  /** No retry helps: 410, other 4xx, a redirect that is not followed, a forbidden target. */
  Schema.TaggedStruct("PermanentFailure", {
    code: Schema.optionalKey(Count),
    problem: Schema.String
  }),
  /**
   * 408, 425, 429, 5xx, 409 with Retry-After, transport failures. `retryAfterMs` is Retry-After,
   * from now.
   */
  Schema.TaggedStruct("RetryableFailure", {
    code: Schema.optionalKey(Count),
    problem: Schema.String,
    retryAfterMs: Schema.optionalKey(Count)
  }),
  /**
   * The attempt was not made, or not to its end: the origin's queue is full, its circuit is open,
   * a redirect has to wait, or memory is short. Retry at `untilMs`, a time of day.
   */
  Schema.TaggedStruct("Deferred", { untilMs: Count })
])

export type DeliveryOutcome = typeof DeliveryOutcome.Type

export type Deferred = Extract<DeliveryOutcome, { readonly _tag: "Deferred" }>

export type DeliveryFailure = Extract<
  DeliveryOutcome,
  { readonly _tag: "PermanentFailure" | "RetryableFailure" }
>

/** Headers and body of a post; `headers` has neither Host, nor Content-Length, nor credentials. */
export interface OutboundContent {
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | Uint8Array
  /** The Authorization of a Web Push (RFC 8292). Only the origin of the first hop gets it. */
  readonly authorization?: string
}

/** Content whose body is text. */
export interface TextContent extends OutboundContent {
  readonly body: string
}

/** Content that is loaded only when it is sent, so that a waiting request holds no memory. */
export interface BodySource {
  /**
   * Called on each hop, when the request has its permit. Undefined gives the request up: the
   * outcome is PermanentFailure, "no longer wanted". It does not throw.
   */
  readonly load: () => OutboundContent | undefined | Effect.Effect<OutboundContent | undefined>
}

/** Addresses that a request may reach: public ones, or also those that the operator has allowed. */
export type Reach = "public" | "allowed"

/**
 * Who causes a request. Causes share the permits of a node, so that none of them delays another.
 * `mailbox` names the mailbox of a request whose account is not known, such as a push to a callback
 * that was registered with the mailbox's password; `network` the network of an anonymous client.
 */
export interface RequestCause {
  readonly kind: "account" | "mailbox" | "network"
  readonly id: string
}

/** The name of a header in lower case, and its value. */
const HeaderField = Schema.Tuple([Schema.String, Schema.String])

/**
 * What an attempt has exchanged on its last hop, for whoever has to find out why it fails. Headers
 * are without credentials and cookies, and without those that undici adds for the connection; a
 * signature is cut, so that nobody can send the request again.
 */
export const ExchangeRecord = Schema.Struct({
  /** When the request of the first hop began, ms since the epoch. */
  beganAtMs: Count,
  /** Of all hops; left out of one whose time would tell too much. */
  durationMs: Schema.optionalKey(Count),
  /** How many redirects were followed; left out for none. */
  redirects: Schema.optionalKey(Count),
  requestHeaders: Schema.Array(HeaderField),
  /** The status code; left out without an answer. */
  code: Schema.optionalKey(Count),
  /** Left out without an answer, and if the observer may not see the answers of the address. */
  answer: Schema.optionalKey(Schema.Struct({
    /** Whether the address is public; left out for one that only the operator's rules allow. */
    isPublic: Schema.optionalKey(Schema.Boolean),
    headers: Schema.Array(HeaderField),
    /** Bytes of the body that have arrived; reading stops at 64 KiB. */
    bytes: Count,
    /** The first 4 KiB of the body; left out if they are not text in UTF-8. */
    text: Schema.optionalKey(Schema.String),
    /** Whether the text is shorter than what has arrived. */
    isCut: Schema.optionalKey(Schema.Boolean)
  }))
})

export type ExchangeRecord = typeof ExchangeRecord.Type

/** Gets what one attempt exchanges. The text of an answer is untrusted. */
export interface ExchangeObserver {
  /**
   * The addresses whose answers may be seen. With `public` the answer of another address is left
   * out, so that a request is no way to read what only the operator's own network may read. With
   * `allowed` this holds for every other origin than that of the first hop.
   */
  readonly answersOf: Reach
  /** Called after each hop that has loaded its content; the last call is that of the last hop. */
  readonly record: (record: ExchangeRecord) => void
}

/** Who causes a request and where it may go, beside the rules of all requests. */
export interface RequestBounds {
  readonly cause: RequestCause
  /** The addresses that it may reach; by default also those that the operator has allowed. */
  readonly reach?: Reach
  /**
   * Asked for the absolute URI of each redirect before it is followed. An outcome is that of the
   * request, which then is not made there; undefined admits it. By default all are admitted.
   */
  readonly admitRedirect?: (uri: string) => Effect.Effect<Deferred | undefined>
}

/** A request with a body. */
export type OutboundPost = (OutboundContent | BodySource) & RequestBounds & {
  readonly uri: string
  /** Whether a redirect is a permanent failure; by default 307 and 308 are followed. */
  readonly refusesRedirects?: boolean
  /** Whether a 405 or 415 starts discovery of a mailbox at the target (rel=mailbox). */
  readonly discovers?: boolean
  /**
   * The content as JSON-LD, for an inbox of Linked Data Notifications: one that its Accept-Post
   * names, or that is found as rel=ldp#inbox. Only used if the post discovers.
   */
  readonly toLinkedData?: (content: TextContent) => TextContent
  /**
   * Delivers to a discovered mailbox of this service without HTTP; undefined for any other URI.
   * Only used if the post discovers.
   */
  readonly deliverLocally?: (uri: string) => Effect.Effect<DeliveryOutcome> | undefined
  readonly observer?: ExchangeObserver
  /** The `traceparent` of what sends the post. If the node exports traces, each hop has a span. */
  readonly trace?: string | undefined
}

/** The resource that a GET returned. */
export interface Fetched {
  /** The final URI, after redirects. */
  readonly uri: string
  readonly code: number
  /** Content-Type as it was sent; `application/octet-stream` without. */
  readonly type: string
  readonly bytes: Uint8Array
}

/** Counts the memory that the body of a response takes; its owner releases what is left. */
export interface BodyMemory {
  /** False if there is no room for so many bytes more. */
  readonly reserve: (bytes: number) => boolean
  readonly release: (bytes: number) => void
}

export interface OutboundGet extends RequestBounds {
  readonly uri: string
  readonly headers?: Readonly<Record<string, string>>
  /** A body with more bytes, after decompression, is a permanent failure. */
  readonly bytesMax: number
  /** Asked for memory as bytes arrive. Without room the outcome is Deferred. */
  readonly memory?: BodyMemory
  /** Whether a redirect is a permanent failure; by default it is followed. */
  readonly refusesRedirects?: boolean
  readonly observer?: ExchangeObserver
}

/** The outcome of a GET: a 2xx is Fetched, never Delivered. */
export type FetchOutcome =
  | { readonly _tag: "Fetched"; readonly fetched: Fetched }
  | Exclude<DeliveryOutcome, { readonly _tag: "Delivered" }>

export interface OutboundHead extends RequestBounds {
  readonly uri: string
  readonly headers?: Readonly<Record<string, string>>
}

/** The outcome of a HEAD: a 2xx is Probed, never Delivered. */
export type HeadOutcome =
  /** `acceptPost` has the media types of Accept-Post (LDP §7.1), in lower case. */
  | { readonly _tag: "Probed"; readonly acceptPost: ReadonlyArray<string> }
  | Exclude<DeliveryOutcome, { readonly _tag: "Delivered" }>

/**
 * Requests to other services under the rules of protocol §5: each hop's address is checked and
 * pinned; time, bytes and attempts per origin are bounded; each origin has a circuit breaker.
 * Its effects never fail and are interruptible.
 */
export interface Outbound {
  readonly post: (post: OutboundPost) => Effect.Effect<DeliveryOutcome>
  readonly get: (get: OutboundGet) => Effect.Effect<FetchOutcome>
  /** A HEAD follows the redirects that a POST would follow. */
  readonly head: (head: OutboundHead) => Effect.Effect<HeadOutcome>
}
