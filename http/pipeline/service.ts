/** The dependencies of handlers: the actor system, its stores, the settings and the caches. */
import { Clock, Effect } from "effect"
import type { Keyring, NodePauses, OutboundService, UsageLedger } from "../../actors/index.ts"
import { type Address, type AskFailure, type BlobsApi, isRefusal, type Recorder, type RecordsApi,
  type Refusal, type SystemApi, type Tagged, type Traces } from "../../runtime/index.ts"
import type { CredentialCache } from "../auth/credentials/index.ts"
import type { Issuer } from "../auth/issuer/index.ts"
import type { Documentation } from "../documentation/index.ts"
import type { DocumentParser } from "../formats/xml/index.ts"
import type { NodeHistory } from "../history/index.ts"
import { formatAwaitMs, formatPollMs, upgradeRetrySeconds } from "../limits.ts"
import type { RowCaches } from "../query-engine/index.ts"
import type { ActorListings, BlockList, Clients, DiskFloor, DocsSearches, NetworkPlaces,
  OpenAnswers, RateLimiter, RefusalCounter, RemoteReader, RowScans,
  TextSearches } from "../rates/index.ts"
import type { HttpRequest } from "../wire/index.ts"
import { type HttpError, httpError, refusalError, tooManyOpen } from "./http-error.ts"
import type { HttpMetrics } from "./http-metrics.ts"

/** A setting of the node that answers, for admins. */
export interface ShownSetting {
  /** The path of the value in cluster.config.ts, with dots. */
  readonly name: string
  /** The environment variable. */
  readonly variable: string
  /** Where the value comes from; `unset` without one. */
  readonly source: string
  /** As written; undefined without one, and for a secret. */
  readonly value: string | undefined
  readonly isSecret: boolean
}

export interface HttpSettings {
  /** Absolute, without a slash at its end. The service never builds a URI from `Host`. */
  readonly baseUrl: string
  /** The start of the URIs of content, likewise; undefined where that is `baseUrl`. */
  readonly contentBaseUrl: string | undefined
  readonly version: string
  /** Whether an answer of a session may be an `href` (protocol §7). */
  readonly takesReferences: boolean
  /** The URI of the contact in `/.well-known/security.txt`; undefined without one. */
  readonly securityContact: string | undefined
  /** Who may publish content (A1). */
  readonly publish: "anyone" | "accounts"
  readonly contentBytesMax: number
  /** Retention of retrieved notifications in a mailbox that sets no retention. */
  readonly retentionMs: number
  /** The origin whose pages may read answers (CORS), `*` for all; undefined for none. */
  readonly corsOrigin: string | undefined
  /** Foreign origins at which a notification may have any number of recipients (protocol §7). */
  readonly fanOutAllow: ReadonlyArray<string>
}

export interface Service {
  readonly settings: HttpSettings
  readonly system: SystemApi
  readonly blobs: BlobsApi
  readonly records: RecordsApi
  /** What owners have stored, and their quotas. */
  readonly usage: UsageLedger
  readonly documentParser: DocumentParser
  /** The pages of `/docs`. */
  readonly documentation: Documentation
  /** Rows of `records` in this node's memory. */
  readonly rowCaches: RowCaches
  /** The name of the storage engine, for people. */
  readonly engine: string
  /** Reads resources of other services. */
  readonly remoteReader: RemoteReader
  /** The external issuer whose Bearer tokens are accepted; undefined without one. */
  readonly issuer: Issuer | undefined
  readonly credentialCache: CredentialCache
  /** Tells where requests come from. */
  readonly clients: Clients
  /** Undefined without rate limits. */
  readonly rateLimiter: RateLimiter | undefined
  /** The depositors that the service takes nothing from. */
  readonly blocks: BlockList
  /** Counts the refused operations of admins for the audit log. */
  readonly auditRefusals: RefusalCounter
  /** Undefined where the store is not on a disk of this node. */
  readonly diskFloor: DiskFloor | undefined
  /** The event streams and long polls of this node. */
  readonly openAnswers: OpenAnswers
  /** The scans of rows that this node runs. */
  readonly rowScans: RowScans
  /** The listings that ask an actor for each entry. */
  readonly actorListings: ActorListings
  /** The pauses of outgoing mailboxes, as far as submissions know them. */
  readonly pauses: NodePauses
  /** The searches in mailboxes and cabinets. */
  readonly textSearches: TextSearches
  /** The searches in the documentation. */
  readonly docsSearches: DocsSearches
  /** `<node>.<random>`, new at each start of the node; neither part contains a dot. */
  readonly startId: string
  /** A secret of all nodes, in the store; the ids of keyed requests derive from it. */
  readonly serviceKey: string
  /** The public key by which browsers subscribe to pushes (RFC 8292 §4), base64url. */
  readonly applicationServerKey: string
  /** Encrypts message passwords for the store. */
  readonly keyring: Keyring
  readonly httpMetrics: HttpMetrics
  /** Records the spans of requests; undefined: the node exports no traces. */
  readonly traces?: Traces | undefined
  /** What this node has measured in the last hour, and the last events that it has seen. */
  readonly history: NodeHistory
  /** What passes through this node, for the inspector; undefined: it records nothing. */
  readonly recorder?: Pick<Recorder, "commitsOf" | "messagesOf" | "startedMs"> | undefined
  /** The state of requests to other services. */
  readonly deliveries: Pick<OutboundService, "metrics" | "busiestOrigins">
  /** All settings of this node, in the order of the reference. */
  readonly shownSettings: ReadonlyArray<ShownSetting>
  /** The text of `/metrics`. */
  readonly metricsText: () => string
  /** The archive of the whole store, read while the service runs. */
  readonly archive: () => AsyncIterable<Uint8Array>
  /** Fails with the reason why this node is not ready for requests. */
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
  failRefused(askOrRefusal<Reply>(service, to, message, isNew))

/** What knows the newest format that every node reads. */
interface FormatSource {
  readonly system: Pick<SystemApi, "format">
}

/**
 * Waits until all nodes know messages of this format, which a cluster finds out soon after its
 * start; false if a node of an earlier version is still in it.
 */
export const awaitFormat = Effect.fnUntraced(function*(
  { system }: FormatSource,
  format: number
): Effect.fn.Return<boolean> {
  const endMs = (yield* Clock.currentTimeMillis) + formatAwaitMs
  while (system.format() < format && (yield* Clock.currentTimeMillis) < endMs) {
    yield* Effect.sleep(formatPollMs)
  }
  return system.format() >= format
})

/** 503 while a node of an earlier version would not know messages of this format. */
export const requireFormat = (
  service: FormatSource,
  format: number
): Effect.Effect<void, HttpError> =>
  Effect.flatMap(awaitFormat(service, format), (isKnown): Effect.Effect<void, HttpError> =>
    isKnown
      ? Effect.void
      : Effect.fail(httpError(
        "overloaded",
        "a node of the cluster runs an earlier version, which does not know this request: send " +
          "it again when all nodes are updated",
        [["Retry-After", String(upgradeRetrySeconds)]]
      )))

/** The view in an actor's reply to `message`, or its refusal. */
export const describeActor = <View>(
  service: Service,
  to: Address,
  message: Tagged
): Effect.Effect<View | Refusal, AskFailure> =>
  Effect.map(
    askOrRefusal<{ readonly _tag: string; readonly view: View }>(service, to, message),
    (reply) => isRefusal(reply) ? reply : reply.view
  )

/** Fails with the problem of a refusal. */
export const failRefused = <Reply, E>(
  asked: Effect.Effect<Reply | Refusal, E>
): Effect.Effect<Reply, E | HttpError> =>
  Effect.flatMap(
    asked,
    (reply): Effect.Effect<Reply, HttpError> =>
      isRefusal(reply) ? Effect.fail(refusalError(reply)) : Effect.succeed(reply)
  )

/** Runs a read that takes long in a place for it; fails with 429 or 503 without one. */
export const inPlace = <A, E>(
  places: NetworkPlaces,
  request: HttpRequest,
  running: Effect.Effect<A, E>
): Effect.Effect<A, E | HttpError> =>
  Effect.acquireUseRelease(
    Effect.suspend(() => {
      const place = places.take(request)
      return place._tag === "Taken" ? Effect.succeed(place) : Effect.fail(tooManyOpen(place))
    }),
    () => running,
    ({ release }) => Effect.sync(release)
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

/** The absolute URI of a content. Its owner changes it at the path under the base URL. */
export const contentUri = ({ settings }: Service, id: string): string =>
  `${settings.contentBaseUrl ?? settings.baseUrl}/content/${id}`

/** The path of a URI of this service, query included; undefined for URIs of others. */
export const localPath = (service: Service, target: string): string | undefined => {
  const { baseUrl, contentBaseUrl } = service.settings
  if (target.startsWith("/") && !target.startsWith("//")) return target
  if (target.startsWith(`${baseUrl}/`)) return target.slice(baseUrl.length)
  return contentBaseUrl !== undefined && target.startsWith(`${contentBaseUrl}/content/`)
    ? target.slice(contentBaseUrl.length)
    : undefined
}
