/** What the handlers share: the actor system, the stores beside it, and the settings of HTTP. */
import { Effect } from "effect"
import { type Address, type AskFailure, type BlobsApi, isRefusal, type RecordsApi, type Refusal,
  type SystemApi, type Tagged } from "../../runtime/index.ts"
import type { CredentialCache } from "../auth/credentials/index.ts"
import type { Issuer } from "../auth/issuer/index.ts"
import type { DocumentParser } from "../formats/xml/index.ts"
import type { RowCaches } from "../query-engine/index.ts"
import { type HttpError, refusalError } from "./failures.ts"
import type { HttpMetrics, OutboundStatus } from "./http-metrics.ts"
import type { RateLimiter, RateLimits } from "./rate-limits.ts"

export interface HttpSettings {
  /** Absolute, without a slash at its end. The Host header is never used to build a URI. */
  readonly baseUrl: string
  readonly version: string
  /** Who may publish content (A1). */
  readonly publish: "anyone" | "accounts"
  readonly contentBytesMax: number
  /** How long a retrieved notification is kept by a mailbox that names no retention. */
  readonly retentionMs: number
  /** Origin that may read answers across sites, `*` for all; undefined for none. */
  readonly corsOrigin: string | undefined
  /** Prefixes (CIDR) of proxies whose X-Forwarded-For is believed. */
  readonly trustedProxies: ReadonlyArray<string>
  /** How many requests each address and each account may make at this node. */
  readonly rateLimits: RateLimits
}

export interface Service {
  readonly settings: HttpSettings
  readonly system: SystemApi
  readonly blobs: BlobsApi
  readonly records: RecordsApi
  readonly documentParser: DocumentParser
  /** Rows of `records` that this node has in memory. */
  readonly rowCaches: RowCaches
  /** What this node keeps everything in, for people. */
  readonly engine: string
  /**
   * GET of another service's resource under the outbound rules (protocol §5), whole; fails with
   * what was wrong, for people.
   */
  readonly readRemote: (
    uri: string,
    accept: string,
    bytesMax: number
  ) => Effect.Effect<{ readonly type: string; readonly bytes: Uint8Array }, string>
  /** Whose Bearer tokens are accepted beside the service's own; undefined for nobody's. */
  readonly issuer: Issuer | undefined
  /** What this node remembers of credentials. */
  readonly credentialCache: CredentialCache
  /** The requests that were made lately; undefined where nobody is limited. */
  readonly rateLimiter: RateLimiter | undefined
  /** Blobs that are stored and not yet shown by their content; the sweep leaves them alone. */
  readonly pendingBlobs: Set<string>
  /** `<node>.<random>`: another at each start of the node. No dot in either part. */
  readonly startId: string
  /** Secret of the whole service, kept in the store: derives the ids of keyed requests. */
  readonly serviceKey: string
  /** What is counted of requests; for handlers that answer directly. */
  readonly httpMetrics: HttpMetrics
  readonly deliveries: OutboundStatus
  /** Prometheus text of everything measured. */
  readonly metricsText: () => string
  /** Everything that is kept, as one archive, read while the service goes on. */
  readonly archive: () => AsyncIterable<Uint8Array>
  /** Fails with the reason why this node should get no requests. */
  readonly ready: Effect.Effect<void, string>
  readonly nowMs: () => number
}

/**
 * Asks an actor. The reply's type is that of the actor's protocol, which the caller names; a
 * refusal stays a reply. `isNew`: its id was drawn for this request.
 */
export const askOrRefusal = <Reply>(
  { system }: Service,
  to: Address,
  message: Tagged,
  isNew = false
): Effect.Effect<Reply | Refusal, AskFailure> => {
  const answered = isNew ? system.askNew(to, message) : system.ask(to, message)
  // The kind at this address replies in its own protocol's Reply type, and in no other.
  return answered as Effect.Effect<Reply | Refusal, AskFailure>
}

/** Asks an actor; a refusal becomes its problem. */
export const ask = <Reply>(
  service: Service,
  to: Address,
  message: Tagged,
  isNew = false
): Effect.Effect<Reply, AskFailure | HttpError> =>
  Effect.flatMap(
    askOrRefusal<Reply>(service, to, message, isNew),
    (reply): Effect.Effect<Reply, HttpError> =>
      isRefusal(reply) ? Effect.fail(refusalError(reply)) : Effect.succeed(reply)
  )

/** The reply, which must be the one with this tag; the protocol of its actor allows no other. */
export const expectReply = <Reply extends Tagged, const Tag extends Reply["_tag"]>(
  reply: Reply,
  tag: Tag
): Extract<Reply, { readonly _tag: Tag }> => {
  if (reply._tag !== tag) throw new Error(`an actor replied ${reply._tag} instead of ${tag}`)
  // The comparison above narrows the union, which TypeScript does not follow for a generic tag.
  return reply as Extract<Reply, { readonly _tag: Tag }>
}

/** The absolute URI of a path of this service. */
export const absoluteUri = (service: Service, path: string): string =>
  service.settings.baseUrl + path

/** The path of a URI under this service's base URL, query included; undefined for others. */
export const localPath = (service: Service, target: string): string | undefined => {
  const { baseUrl } = service.settings
  if (target.startsWith("/") && !target.startsWith("//")) return target
  return target.startsWith(`${baseUrl}/`) ? target.slice(baseUrl.length) : undefined
}
