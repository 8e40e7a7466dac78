/** A request as a handler receives it, and the answer that it returns. */
import { Effect } from "effect"
import type { TokenScope } from "../../actors/account/index.ts"
import type { EarlierDeposit } from "../../actors/idempotency/index.ts"
import { isActorId } from "../../runtime/index.ts"
import type { Identity, IdSource } from "../auth/credentials/index.ts"
import { type FormatOffer, type MediaType, negotiate, type ResourceView,
  standardTypes } from "../formats/index.ts"
import type { DocumentParser, Element } from "../formats/xml/index.ts"
import type { AnswerBytes, EventStream, Exchange, HttpReply, HttpRequest, ReplyHeaders,
  RequestBody } from "../wire/index.ts"
import { type HandlerFailure, type HttpError, httpError } from "./http-error.ts"
import type { Parameters } from "./routing.ts"
import { absoluteUri, type Service } from "./service.ts"

/** Whether the method only reads; the answer to HEAD has the fields of that to GET. */
export const isRead = (method: string): boolean => method === "GET" || method === "HEAD"

/** Whether the client expects a page. */
export const isPageRequest = ({ headers }: HttpRequest): boolean =>
  negotiate(headers.get("accept"), standardTypes) === "text/html"

/** What a token must be for to be used for an operation. */
export interface OperationAccess {
  /** The token needs one of these scopes; none if the operation is open to everybody. */
  readonly scopes: ReadonlyArray<TokenScope>
  /** Whether a request whose token has none of the scopes continues without an account. */
  readonly isOptional: boolean
}

/** Whether a browser submitted a form, in its body or the query, and expects a page. */
export const isPageForm = (request: HttpRequest): boolean =>
  (isRead(request.method) ||
    request.headers.get("content-type")?.startsWith("application/x-www-form-urlencoded") ===
      true) &&
  isPageRequest(request)

export interface Call {
  readonly request: HttpRequest
  readonly exchange: Exchange
  /** The body; the server began to read it when the request arrived. */
  readonly body: RequestBody
  readonly documentParser: DocumentParser
  readonly parameters: Parameters
  readonly identity: Identity
  /** See {@link ResourceHandler}. */
  readonly access?: OperationAccess
  /** Draws new ids and secrets; a repeated request with an Idempotency-Key draws the same. */
  readonly ids: IdSource
  /** The request's Idempotency-Key; undefined without one. */
  readonly key: CallKey | undefined
  /** See {@link ResourceHandler}. */
  readonly documentFault?: (root: Element) => string | undefined
}

/** An Idempotency-Key, for handlers. */
export interface CallKey {
  /** Names the key beside its actor: see {@link ResourceHandler.keyBeside}. */
  readonly hash: string
  /** The deposit that earlier attempts have stored or may have stored; undefined without any. */
  readonly earlier: EarlierDeposit | undefined
}

/** A negotiated answer. The answer to a GET has an ETag and honors preconditions. */
export interface ViewAnswer {
  readonly _tag: "View"
  readonly status: number
  readonly view: ResourceView
  readonly offered?: ReadonlyArray<MediaType>
  readonly headers?: ReplyHeaders
  /** The time in `Last-Modified`; the answer has an ETag in any case. */
  readonly lastModifiedMs?: number
}

/** An answer in memory: not negotiated, or already rendered. */
export interface PlainAnswer extends HttpReply {
  readonly _tag: "Plain"
}

export type HandlerAnswer =
  | ViewAnswer
  | PlainAnswer
  | {
    readonly _tag: "Stream"
    readonly status: number
    readonly headers: ReplyHeaders
    /** Undefined if it is unknown: the body is then sent in chunks. */
    readonly lengthBytes: number | undefined
    readonly source: AnswerBytes
    /** Others wait for its end: a reader that is too slow is disconnected. */
    readonly holdsPlace?: boolean
    /** Called once when the answer has ended, also if its client left before the first byte. */
    readonly ended?: () => void
  }
  /** A stream of server-sent events; `start` is called once the headers are sent. */
  | {
    readonly _tag: "Events"
    readonly headers: ReplyHeaders
    readonly start: (events: EventStream) => void
  }

/** The body of a stream that has none, as in the answer to HEAD. */
export const emptySource: AsyncIterable<Uint8Array> = {
  [Symbol.asyncIterator]: () => ({ next: () => Promise.resolve({ done: true, value: undefined }) })
}

/** Header fields of an answer that shows a secret, or changes with every request. */
export const noStore: ReplyHeaders = [["Cache-Control", "no-store"]]

/** Header fields of an answer that only the authenticated reader may see. */
export const readerHeaders: ReplyHeaders = [
  ["Vary", "Authorization"],
  ["Vary", "Cookie"],
  ["Cache-Control", "private, no-cache"]
]

export type Handled = Effect.Effect<HandlerAnswer, HandlerFailure>

/** Answers one method of one resource. */
export interface ResourceHandler {
  /** The ordinary way: with a fiber, negotiation and preconditions. */
  readonly handle: (call: Call) => Handled
  /** The representations of the path's resource; undefined where GET is not negotiated. */
  readonly offer?: FormatOffer
  /** See {@link Operation}. */
  readonly contentOrigin?: "only" | "also"
  /** How the body is read; the default is "none". */
  readonly body?: "document" | "stream" | "none"
  /** What is wrong with the elements of a document by its schema. */
  readonly documentFault?: (root: Element) => string | undefined
  /**
   * The path parameter of an actor that may signal the request's idempotency key: the key's actor
   * is in that actor's shard.
   */
  readonly keyBeside?: string
  /** The scopes of a token for it; undefined if it is open to everybody. */
  readonly access?: OperationAccess
  /** Whether the request needs an account: without one it is 401, whatever key it has. */
  readonly needsAccount?: boolean
  /** Whether the request may store something without an account; see `rates/disk-floor.ts`. */
  readonly storesForAnyone?: boolean
  /** See {@link Operation}. */
  readonly isUnkeyed?: boolean
  /**
   * Checks the caller's right before an answer is repeated, where no account has it by itself, and
   * counts wrong credentials.
   */
  readonly authorize?: (call: Call) => Effect.Effect<unknown, HandlerFailure>
  /**
   * The hot path: answers through the exchange without a fiber. The application calls it if the
   * request has neither credentials nor an Idempotency-Key.
   */
  readonly direct?: (request: HttpRequest, exchange: Exchange, parameters: Parameters) => void
}

/** A handler that is written as a generator over the service and the call. */
export const defineHandler = (
  run: (service: Service, call: Call) => Effect.fn.Return<HandlerAnswer, HandlerFailure>
): (service: Service) => ResourceHandler["handle"] => {
  const handle = Effect.fnUntraced(run)
  return (service) => (call) => formatFault(call) ?? handle(service, call)
}

/** Fails for a URI that names no representation of its resource; undefined for others. */
export const formatFault = (
  { request: { choice } }: Pick<Call, "request">
): Effect.Effect<never, HttpError> | undefined =>
  choice?.fault === undefined ? undefined : Effect.fail(httpError("malformed", choice.fault))

/** An actor's id in the path; 404 for a text that cannot be one. */
export const actorIdOf = (
  { parameters }: Call,
  name: string
): Effect.Effect<string, HttpError> => {
  const id = parameters.get(name)
  return parameters.secret(name) === undefined && isActorId(id)
    ? Effect.succeed(id)
    : Effect.fail(httpError("not-found"))
}

export const emptyAnswer = (status: number, headers: ReplyHeaders = []): PlainAnswer => ({
  _tag: "Plain",
  status,
  headers
})

/** 303: redirects a browser to another page after its form. */
export const seeOther = (service: Service, path: string): HandlerAnswer =>
  emptyAnswer(303, [["Location", absoluteUri(service, path)], ...noStore])

export const viewAnswer = (
  view: ResourceView,
  options: Omit<ViewAnswer, "_tag" | "view" | "status"> & { readonly status?: number } = {}
): HandlerAnswer => ({ _tag: "View", status: 200, ...options, view })

/** 201 with the URI of the new resource. */
export const createdAnswer = (
  service: Service,
  path: string,
  view: ResourceView,
  headers: ReplyHeaders = []
): HandlerAnswer =>
  viewAnswer(view, {
    status: 201,
    headers: [["Location", absoluteUri(service, path)], ...headers]
  })
