/**
 * One outbound request in order: check the destination, wait for a permit of the origin limiter,
 * exchange, follow redirects. A post whose target accepts no notifications is sent to a
 * discovered mailbox or inbox (protocol §1.2, §5).
 */
import { Effect } from "effect"
import type { Agent } from "undici"
import type { OpenSpan, SpanAttributes, Traces } from "../../runtime/index.ts"
import { answerBytesMax, type DeliveryLimits, fetchMemoryRetryMs, redirectsMax } from "../limits.ts"
import type { Connector } from "./connector.ts"
import type { Destination, DestinationCache } from "./destination.ts"
import { inboxIn, mailboxIn } from "./discovery.ts"
import { decoded, type DecodingFailure, exchange, type ExchangeRequest, type ExchangeResponse,
  type ExchangeResult, type Headers, isIdentity } from "./exchange.ts"
import type { OriginHealth, OriginLimiter } from "./origin-limiter.ts"
import { noAnswerInTime } from "./problems.ts"
import type { BodyMemory, Deferred, DeliveryFailure, DeliveryOutcome, ExchangeObserver,
  ExchangeRecord, FetchOutcome, HeadOutcome, OutboundContent, OutboundGet, OutboundHead,
  OutboundPost, RequestBounds, RequestCause, TextContent } from "./protocol.ts"
import { acceptPostOf, afterHop, exchangeRecordOf, outcomeOf, redirectOf,
  valueOf } from "./response.ts"

/** The resources that all requests of a node share. */
export interface OutboundResources {
  readonly agent: Agent
  readonly connector: Connector
  readonly destinations: DestinationCache
  readonly limiter: OriginLimiter
  readonly limits: DeliveryLimits
  readonly userAgent: string
  readonly nowMs: () => number
  readonly traces?: Traces | undefined
}

type RequestContent =
  & Pick<ExchangeRequest, "headers" | "body">
  & Pick<OutboundContent, "authorization">

type LoadedContent = RequestContent | undefined | Effect.Effect<RequestContent | undefined>

/** A request before its redirects. `load` is called on each hop; see `BodySource`. */
type HttpRequest = Pick<ExchangeRequest, "method" | "keep" | "bytesMax" | "memory"> & {
  readonly uri: string
  readonly load: () => LoadedContent
  readonly cause: RequestCause
  readonly refusesRedirects?: boolean
  readonly admitRedirect?: RequestBounds["admitRedirect"] | undefined
  readonly observer?: ExchangeObserver | undefined
  /** The `traceparent` of what makes the request. */
  readonly trace?: string | undefined
}

/** The time that one attempt has left for all its requests, in ms. */
interface TimeLeft {
  /** On the wire. */
  sendMs: number
  /** In the queues of origins. */
  waitMs: number
}

/** The response of the last hop, and the URL of that hop. */
interface FinalResponse {
  readonly _tag: "Final"
  readonly url: URL
  readonly response: ExchangeResponse
}

const timeOf = ({ limits }: OutboundResources): TimeLeft => ({
  sendMs: limits.attemptMs,
  waitMs: limits.waitMs
})

/** Reports each hop with the time from the first one on. */
const fromFirstHop = (observer: ExchangeObserver | undefined): ExchangeObserver | undefined => {
  if (observer === undefined) return undefined
  let last: ExchangeRecord | undefined
  return {
    ...observer,
    record: (hop) => {
      last = last === undefined ? hop : afterHop(last, hop)
      observer.record(last)
    }
  }
}

/** Makes a POST; discovery and all hops share the time of one attempt. */
export const post = Effect.fnUntraced(function*(
  resources: OutboundResources,
  outboundPost: OutboundPost
): Effect.fn.Return<DeliveryOutcome> {
  const time = timeOf(resources)
  const request: HttpRequest = {
    uri: outboundPost.uri,
    method: "POST",
    keep: "nothing",
    bytesMax: answerBytesMax,
    cause: outboundPost.cause,
    refusesRedirects: outboundPost.refusesRedirects === true,
    admitRedirect: outboundPost.admitRedirect,
    observer: fromFirstHop(outboundPost.observer),
    trace: outboundPost.trace,
    load: "load" in outboundPost ? outboundPost.load : () => outboundPost
  }
  const final = yield* send(resources, request, time)
  if (final._tag !== "Final") return final
  const { code } = final.response
  if (outboundPost.discovers === true && (code === 405 || code === 415)) {
    const elsewhere = yield* sendElsewhere(resources, outboundPost, request, time, final.response)
    if (elsewhere !== undefined) return outcomeAt(resources, elsewhere)
  }
  return outcomeAt(resources, final)
})

/** Makes a GET and decompresses its body. */
export const get = Effect.fnUntraced(function*(
  resources: OutboundResources,
  { admitRedirect, bytesMax, cause, headers = {}, memory, observer, refusesRedirects = false, uri }:
    OutboundGet
): Effect.fn.Return<FetchOutcome> {
  const request: HttpRequest = {
    uri,
    method: "GET",
    keep: "all",
    bytesMax,
    memory,
    cause,
    refusesRedirects,
    admitRedirect,
    observer: fromFirstHop(observer),
    load: () => ({ headers })
  }
  const final = yield* send(resources, request, timeOf(resources))
  const outcome = outcomeAt(resources, final)
  if (final._tag === "Final" && outcome._tag === "Delivered") {
    const deferred: Deferred = {
      _tag: "Deferred",
      untilMs: resources.nowMs() + fetchMemoryRetryMs
    }
    return yield* fetched(final, bytesMax, memory, deferred)
  }
  // Only a response is Delivered, and that was returned above.
  return outcome as Exclude<typeof outcome, { readonly _tag: "Delivered" }>
})

/** Makes a HEAD, to learn what a POST to the URI may carry. */
export const head = Effect.fnUntraced(function*(
  resources: OutboundResources,
  { admitRedirect, cause, headers = {}, uri }: OutboundHead
): Effect.fn.Return<HeadOutcome> {
  const request: HttpRequest = {
    uri,
    method: "HEAD",
    keep: "nothing",
    bytesMax: answerBytesMax,
    cause,
    admitRedirect,
    load: () => ({ headers })
  }
  const final = yield* send(resources, request, timeOf(resources))
  const outcome = outcomeAt(resources, final)
  if (final._tag === "Final" && outcome._tag === "Delivered") {
    return { _tag: "Probed", acceptPost: acceptPostOf(final.response.headers) ?? [] }
  }
  // Only a response is Delivered, and that was returned above.
  return outcome as Exclude<typeof outcome, { readonly _tag: "Delivered" }>
})

/** Sends a request and follows its redirects until there is a final response or an outcome. */
const send = Effect.fnUntraced(function*(
  resources: OutboundResources,
  request: HttpRequest,
  time: TimeLeft
): Effect.fn.Return<FinalResponse | DeliveryOutcome> {
  let { uri } = request
  let firstOrigin: string | undefined
  for (let redirects = 0;; redirects++) {
    const destination = resources.destinations.get(uri)
    if ("problem" in destination) {
      return { _tag: "PermanentFailure", problem: destination.problem }
    }
    const { origin, url } = destination
    firstOrigin ??= origin
    if (time.sendMs <= 0) return { _tag: "RetryableFailure", problem: noAnswerInTime }
    const isSameOrigin = origin === firstOrigin
    const enteredMs = performance.now()
    const result: ExchangeResult | Deferred = yield* resources.limiter.withPermit(
      origin,
      request.cause,
      time.waitMs,
      Effect.suspend(() => {
        time.waitMs -= performance.now() - enteredMs
        return loadAndExchange(resources, request, destination, isSameOrigin, time)
      }),
      healthOf
    )
    if (result._tag === "Deferred") return result
    if (result._tag === "Failed") return result.outcome
    const target = request.refusesRedirects === true
      ? undefined
      : redirectOf(result, request.method, url)
    if (target === undefined) return { _tag: "Final", url, response: result }
    if (redirects === redirectsMax) {
      return { _tag: "PermanentFailure", code: result.code, problem: "too many redirects" }
    }
    const deferred = yield* request.admitRedirect?.(target) ?? Effect.succeed(undefined)
    if (deferred !== undefined) return deferred
    uri = target
  }
})

const healthOf = (result: ExchangeResult): OriginHealth =>
  result._tag === "Response" ? "healthy" : result.health

/** Loads the content and exchanges it for a response; the request holds its permit. */
const loadAndExchange = Effect.fnUntraced(function*(
  resources: OutboundResources,
  { bytesMax, keep, load, memory, method, observer, trace }: HttpRequest,
  { origin, path, url }: Destination,
  isSameOrigin: boolean,
  time: TimeLeft
): Effect.fn.Return<ExchangeResult> {
  const { agent, connector, limits, traces, userAgent } = resources
  const loaded = load()
  const content = Effect.isEffect(loaded) ? yield* loaded : loaded
  if (content === undefined) return obsolete
  const headers = headersOf(content, userAgent, isSameOrigin)
  const span = traces === undefined || trace === undefined
    ? undefined
    : traces.begin({ name: method, kind: "client", parent: trace })
  if (span !== undefined) headers["traceparent"] = span.traceparent
  let isPublic = false
  // A redirect may lead to a private address that nobody has chosen as the target.
  const samples = observer && (() => {
    isPublic = connector.isPublic(origin)
    return isPublic || (isSameOrigin && observer.answersOf === "allowed")
  })
  const bounds = { keep, bytesMax, memory, samples }
  const request = { origin, path, method, ...bounds, headers, body: content.body }
  const beganAtMs = resources.nowMs()
  const keepsConnection = connector.openCount() < limits.connectionsKeptMax
  const sentMs = performance.now()
  const result = yield* exchange(agent, request, time.sendMs, keepsConnection, limits)
  const durationMs = performance.now() - sentMs
  time.sendMs -= durationMs
  if (span !== undefined) endHop(span, method, url, result)
  observer?.record(exchangeRecordOf(headers, result, { beganAtMs, durationMs, isPublic }))
  return result
})

const errorStatusMin = 400

/** Ends the span of a hop. It has no path and no query, which may be all that the target checks. */
const endHop = (
  span: OpenSpan,
  method: string,
  { hostname, port, protocol }: URL,
  result: ExchangeResult
): void => {
  const code = result._tag === "Response" ? result.code : undefined
  const attributes: SpanAttributes = {
    "http.request.method": method,
    "server.address": hostname,
    "server.port": Number(port) || (protocol === "https:" ? 443 : 80),
    ...code === undefined ? {} : { "http.response.status_code": code }
  }
  const status = code !== undefined && code >= errorStatusMin ? String(code) : undefined
  span.end(attributes, result._tag === "Failed" ? result.outcome._tag : status)
}

/** The result when the content source returns nothing: the message is obsolete. */
const obsolete: ExchangeResult = {
  _tag: "Failed",
  outcome: { _tag: "PermanentFailure", problem: "no longer wanted" },
  health: "unknown"
}

/** Headers that are never sent: those of the connection, and credentials. */
const blockedHeaders = new Set([
  "authorization",
  "proxy-authorization",
  "cookie",
  "host",
  "content-length",
  "transfer-encoding",
  "connection",
  "keep-alive",
  "upgrade",
  "expect",
  "te",
  "trailer"
])

/** A secret for the origin of the first hop only. */
const secretHeader = "message-password"

/** Lower-case names, so that the headers set here replace those of the caller. */
const headersOf = (
  { authorization, headers: contentHeaders }: RequestContent,
  userAgent: string,
  isSameOrigin: boolean
): Record<string, string> => {
  const headers: Record<string, string> = { accept: "*/*" }
  for (const name in contentHeaders) {
    const lower = name.toLowerCase()
    const value = contentHeaders[name]
    const isSent = !blockedHeaders.has(lower) && (isSameOrigin || lower !== secretHeader)
    if (value !== undefined && isSent) headers[lower] = value
  }
  if (authorization !== undefined && isSameOrigin) headers["authorization"] = authorization
  headers["user-agent"] = userAgent
  headers["accept-encoding"] = "identity"
  return headers
}

const outcomeAt = (
  { nowMs }: OutboundResources,
  final: FinalResponse | DeliveryOutcome
): DeliveryOutcome => final._tag === "Final" ? outcomeOf(final.response, final.url, nowMs()) : final

const pageTypes = "text/html, application/xhtml+xml;q=0.9, application/ld+json;q=0.8, */*;q=0.1"

/**
 * Sends a post that its target rejected with 405 or 415 in another form or to another target:
 * as JSON-LD if the 415's Accept-Post names it; to the mailbox or inbox that the target's page
 * names; as JSON-LD if the 415 names no types. Undefined if none of them applies.
 */
const sendElsewhere = Effect.fnUntraced(function*(
  resources: OutboundResources,
  { deliverLocally, toLinkedData, uri }: OutboundPost,
  request: HttpRequest,
  time: TimeLeft,
  { code, headers }: ExchangeResponse
): Effect.fn.Return<FinalResponse | DeliveryOutcome | undefined> {
  const linked = toLinkedData && { ...request, load: linkedDataLoad(request.load, toLinkedData) }
  const acceptsLinked = code === 415 ? acceptsLinkedData(headers) : false
  if (linked !== undefined && acceptsLinked === true) return yield* send(resources, linked, time)

  const page = yield* send(resources, {
    uri,
    method: "GET",
    keep: "start",
    bytesMax: answerBytesMax,
    cause: request.cause,
    admitRedirect: request.admitRedirect,
    trace: request.trace,
    load: () => ({ headers: { accept: pageTypes } })
  }, time)
  const { _tag } = outcomeAt(resources, page)
  if (page._tag === "Final" && _tag !== "RetryableFailure") {
    const { response, url } = page
    // An inbox that may not be read still names itself by its Link header (LDN §3.1).
    const body = _tag === "Delivered" ? response.bytes : new Uint8Array()
    const mailbox = _tag === "Delivered"
      ? targetOf(page, mailboxIn(response.headers, body, url))
      : undefined
    if (mailbox !== undefined && mailbox !== uri) {
      return yield* deliverLocally?.(mailbox) ??
        send(resources, sentTo(resources, request, mailbox), time)
    }
    const inbox = linked && targetOf(page, inboxIn(response.headers, body, url, uri))
    // A target that rejects every post also rejects one in another form.
    if (linked !== undefined && inbox !== undefined && !(inbox === uri && code === 405)) {
      return yield* deliverLocally?.(inbox) ??
        send(resources, sentTo(resources, linked, inbox), time)
    }
  } else if (_tag !== "PermanentFailure") return page
  // The 415 named no types: JSON-LD is the only other form.
  if (linked === undefined || acceptsLinked === false) return undefined
  return yield* send(resources, linked, time)
})

const originOf = ({ destinations }: OutboundResources, uri: string): string | undefined => {
  const destination = destinations.get(uri)
  return "problem" in destination ? undefined : destination.origin
}

/** The request to a discovered URI. Its observer has not chosen another origin than its own. */
const sentTo = (resources: OutboundResources, request: HttpRequest, uri: string): HttpRequest => {
  const { observer } = request
  return observer === undefined || originOf(resources, uri) === originOf(resources, request.uri)
    ? { ...request, uri }
    : { ...request, uri, observer: { ...observer, answersOf: "public" } }
}

/** A discovered URI, unless it leads from https to http. */
const targetOf = ({ url }: FinalResponse, uri: string | undefined): string | undefined =>
  url.protocol === "https:" && uri?.startsWith("http:") === true ? undefined : uri

/** Every post that has a form in JSON-LD has text. */
const textOf = (body: RequestContent["body"]): string => typeof body === "string" ? body : ""

const linkedDataLoad = (
  load: HttpRequest["load"],
  toLinkedData: (content: TextContent) => TextContent
): HttpRequest["load"] => {
  const convert = (content: RequestContent | undefined): RequestContent | undefined =>
    content && toLinkedData({ headers: content.headers, body: textOf(content.body) })
  return () => {
    const loaded = load()
    return Effect.isEffect(loaded) ? Effect.map(loaded, convert) : convert(loaded)
  }
}

/** Whether a 415's Accept-Post (LDP §7.1) names JSON-LD; undefined without Accept-Post. */
const acceptsLinkedData = (headers: Headers): boolean | undefined =>
  acceptPostOf(headers)?.some((type) =>
    type === "application/ld+json" || type === "application/*" || type === "*/*"
  )

/** The decompressed body of a GET's 2xx response; `deferred` if there is no memory for it. */
const fetched = (
  { response, url }: FinalResponse,
  bytesMax: number,
  memory: BodyMemory | undefined,
  deferred: Deferred
): Effect.Effect<FetchOutcome> => {
  const { broken, bytes, code, headers, isTooLarge, lacksMemory } = response
  const failures: Readonly<Record<DecodingFailure, DeliveryFailure>> = {
    TooLarge: { _tag: "PermanentFailure", problem: `larger than ${bytesMax} bytes` },
    Unknown: { _tag: "PermanentFailure", code, problem: "the content encoding is not supported" },
    Corrupted: { _tag: "RetryableFailure", code, problem: "the content encoding is corrupted" }
  }
  if (lacksMemory) return Effect.succeed(deferred)
  if (isTooLarge) return Effect.succeed(failures.TooLarge)
  if (broken !== undefined) {
    return Effect.succeed({ _tag: "RetryableFailure", code, problem: broken })
  }
  const type = valueOf(headers, "content-type") ?? "application/octet-stream"
  const encoding = valueOf(headers, "content-encoding")
  // The length of the decompressed body is not known before.
  const reserved = isIdentity(encoding) ? 0 : bytesMax
  if (memory?.reserve(reserved) === false) return Effect.succeed(deferred)
  return Effect.match(decoded(encoding, bytes, bytesMax), {
    onSuccess: (plain): FetchOutcome => {
      if (reserved > 0) memory?.release(reserved - plain.length)
      return { _tag: "Fetched", fetched: { uri: url.href, code, type, bytes: plain } }
    },
    onFailure: (failure): FetchOutcome => {
      memory?.release(reserved)
      return failures[failure]
    }
  })
}
