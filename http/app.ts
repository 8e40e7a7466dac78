/**
 * The application: how every request is handled, from the server's callback to its answer, in the
 * order of this file. `handle` applies the rate limits and finds the route; `begin` reads the body
 * and checks the origin; `run` calls the handler; `finish` sends the answer or the problem.
 */
import { Cause, Effect, type Exit } from "effect"
import type { EarlierDeposit } from "../actors/idempotency/index.ts"
import { type Identity, identityOf, randomIds } from "./auth/credentials/index.ts"
import { authenticate, authenticateCounted, browserIdentity, isForbiddenOrigin, keyOwnerOf,
  lookUpBrowser, requireAccount } from "./auth/index.ts"
import { ContentOrigin, redirectingRoutes } from "./content-origin.ts"
import { chooseFormat, type FormatChoice, type FormatOffer, formatTypes } from "./formats/index.ts"
import { type Call, compileRoutes, diskLow, type HandlerAnswer, type HandlerFailure,
  hasIdempotencyKey, httpError, isPageRequest, type Match, overLimit, type PlainAnswer, readBody,
  readKeyedRequest, renderFailure, renderView, type ResourceHandler, type Route, runOnce,
  type Service, streamError, tooManyOpen } from "./pipeline/index.ts"
import { chargePrepaid } from "./resources/content/index.ts"
import { beginRequestSpan, withTraceContext } from "./trace-context.ts"
import { documentBody, type Exchange, type HttpRequest, noBody, optionsHeaders, type RequestBody,
  type RequestHeaders, streamBody } from "./wire/index.ts"

/** Runs the effect of a request with the service's logger and clock. */
export type RunEffect = <A, E>(
  effect: Effect.Effect<A, E>,
  observer: (exit: Exit.Exit<A, E>) => void
) => void

/** What the log and the metrics record of a request; it contains no secret. */
export interface AccessRecord {
  readonly method: string
  /** The pattern of the path, such as `/mailboxes/{mailbox}`; `none` without a route. */
  readonly route: string
  readonly status: number
  readonly durationMs: number
}

/** A request, and its match in the table of routes. */
interface Routed {
  readonly request: HttpRequest
  readonly exchange: Exchange
  readonly match: Extract<Match<ResourceHandler>, { readonly _tag: "Found" }>
  readonly bodyKind: "document" | "stream" | "none"
}

/**
 * A request whose Accept field is the format that its URI names, if it names one; with the account
 * whose browser sent it.
 */
class RoutedRequest implements HttpRequest {
  readonly method: string
  readonly path: string
  readonly query: string
  readonly headers: RequestHeaders
  readonly choice: FormatChoice | undefined
  readonly viewer: string | undefined
  private readonly request: HttpRequest

  constructor(request: HttpRequest, choice: FormatChoice | undefined, viewer?: string) {
    this.method = request.method
    this.path = request.path
    this.query = request.query
    this.headers = choice?.format === undefined
      ? request.headers
      : request.headers.with("accept", formatTypes[choice.format])
    this.choice = choice
    this.viewer = viewer
    this.request = request
  }

  /** The connection knows it, and is asked only where it matters. */
  get remoteAddress(): string {
    return this.request.remoteAddress
  }
}

/**
 * A GET with the format that its URI names in place of its Accept field. The resource's other
 * methods have no format; their conditions need its URI.
 */
const withChoice = (
  request: HttpRequest,
  offer: FormatOffer | undefined,
  baseUrl: string
): HttpRequest => {
  if (offer === undefined) return request
  const { method, path, query } = request
  const isRead = method === "GET" || method === "HEAD"
  const choice = chooseFormat({ path, query: isRead ? query : "" }, offer, baseUrl)
  return new RoutedRequest(request, choice)
}

/** A request with the account whose browser sent it. */
const withViewer = (request: HttpRequest, identity: Identity): HttpRequest =>
  identity._tag === "Browser" && identity.known !== undefined
    ? new RoutedRequest(request, request.choice, identity.known.name)
    : request

/** The answer at the URI of one representation does not depend on the Accept field. */
const withoutVaryAccept = ({ choice }: HttpRequest, answer: PlainAnswer): PlainAnswer =>
  choice?.format === undefined ? answer : {
    ...answer,
    headers: answer.headers.filter(([name, value]) => name !== "Vary" || value !== "Accept")
  }

const isCompressed = ({ headers }: HttpRequest): boolean => {
  const coding = headers.get("content-encoding")
  return coding !== undefined && coding.trim().toLowerCase() !== "identity"
}

/** RFC 9110 §15.5.16. */
const compressedBody = httpError(
  "unsupported-media-type",
  "the body has a Content-Encoding; send it without one",
  [["Accept-Encoding", "identity"]]
)

/** RFC 9110 §14.5: no resource here supports PUT of a part. */
const partialPut = httpError(
  "malformed",
  "the request has Content-Range, but PUT here replaces the whole; send all of it without the field"
)

/** Protocol §7, CSRF. */
const forbiddenOrigin = httpError(
  "forbidden",
  "a page of another origin made the browser send this request; open the page at this service, " +
    "or let the operator name the origin in CORS_ORIGIN"
)

/** Reads a stream to its end, so that its digest is complete. */
const drainBody = (body: RequestBody): Effect.Effect<void, HandlerFailure> =>
  Effect.tryPromise({
    try: async () => {
      for await (const chunk of body.stream) void chunk
    },
    catch: () => streamError(body.fault() ?? { _tag: "Aborted" }, "content")
  })

/** Fails with 507 for a request without an account. */
const refuseStranger = Effect.fnUntraced(function*(
  service: Service,
  call: Call
): Effect.fn.Return<void, HandlerFailure> {
  const account = yield* authenticateCounted(service, call)
  if (account === undefined) return yield* diskLow
})

/** Runs the handler. A request with an Idempotency-Key runs once for all of its repetitions. */
export const handleCall = (
  service: Service,
  handler: ResourceHandler,
  call: Call
): Effect.Effect<HandlerAnswer, HandlerFailure> =>
  hasIdempotencyKey(call.request) ? handleOnce(service, handler, call) : handler.handle(call)

const handleOnce = Effect.fnUntraced(function*(
  service: Service,
  handler: ResourceHandler,
  call: Call
): Effect.fn.Return<HandlerAnswer, HandlerFailure> {
  const { body, parameters, request } = call
  const isStream = handler.body === "stream"
  // The handler's own check counts wrong credentials, unless the request is refused before it.
  const authenticateBy = handler.authorize === undefined ? authenticateCounted : authenticate
  const owner = yield* keyOwnerOf(service, call, authenticateBy)
  if (handler.needsAccount === true) yield* requireAccount(service, call)
  const { keyBeside } = handler
  const beside = keyBeside === undefined ? undefined : parameters.get(keyBeside)
  const keyed = yield* Effect.tapError(
    readKeyedRequest(service, request, owner, beside),
    () => authenticateCounted(service, call)
  )
  // A stranger could fill the disk with keys of what stores nothing else, below its floor too.
  if (handler.isUnkeyed === true && !owner.hasAccount) return yield* handler.handle(call)
  const { fingerprintOf, hash, idsFor } = keyed
  if (handler.authorize !== undefined) yield* handler.authorize(call)
  // A body that did not arrive uses no key: its repetition has another fingerprint.
  if (!isStream) yield* readBody(call)
  const fingerprint = () => fingerprintOf(body.digest())
  // The digest of a stream is known at its end only, after the handler has used its ids.
  const knownFingerprint = isStream ? undefined : fingerprint()
  const ids = idsFor(knownFingerprint ?? "stream")
  const run = (earlier: EarlierDeposit | undefined) =>
    Effect.map(handler.handle({ ...call, ids, key: { hash, earlier } }), (answer) => {
      if (answer._tag === "Plain") return answer
      if (answer._tag === "View") return renderView(answer, call, service.settings.baseUrl)
      throw new Error("a request with an Idempotency-Key was answered with a stream")
    })
  const drain = isStream ? drainBody(body) : Effect.void
  // Each removal has content that was counted, and must work when there is no more room.
  const isCharged = !owner.hasAccount && handler.storesForAnyone === true
  const charge = isCharged ? (bytes: number) => chargePrepaid(service, call, bytes) : undefined
  return yield* runOnce(service, keyed, { charge, drain, fingerprint, knownFingerprint, run })
})

class Application {
  private readonly service: Service
  /** Undefined unless content has an origin of its own. */
  private readonly contentOrigin: ContentOrigin | undefined
  private readonly match: ReturnType<typeof compileRoutes<ResourceHandler>>
  /** The guarded methods of patterns. */
  private readonly guarded: ReadonlyMap<string, "all" | ReadonlyArray<string>>
  private readonly runEffect: RunEffect
  private readonly onAccess: (access: AccessRecord) => void

  constructor(
    service: Service,
    routes: ReadonlyArray<Route<ResourceHandler>>,
    runEffect: RunEffect,
    onAccess: (access: AccessRecord) => void
  ) {
    const { contentBaseUrl } = service.settings
    this.service = service
    this.contentOrigin = contentBaseUrl === undefined
      ? undefined
      : new ContentOrigin(contentBaseUrl, service, routes)
    this.match = compileRoutes(
      contentBaseUrl === undefined ? routes : redirectingRoutes(contentBaseUrl, routes)
    )
    this.guarded = new Map(
      routes.flatMap(({ guarded, pattern }) => guarded === undefined ? [] : [[pattern, guarded]])
    )
    this.runEffect = runEffect
    this.onAccess = onAccess
  }

  readonly handle = (request: HttpRequest, exchange: Exchange): void => {
    const ofContent = this.contentOrigin?.requestOf(request)
    if (this.contentOrigin === undefined || ofContent === undefined) {
      return this.handleAt(this.match, request, exchange)
    }
    const { advice, match } = this.contentOrigin
    this.handleAt(match, ofContent, exchange, advice)
  }

  /** Handles a request at one of the service's origins; `advice` is for requests it refuses. */
  private handleAt(
    matcher: Application["match"],
    request: HttpRequest,
    exchange: Exchange,
    advice?: string
  ): void {
    const { rateLimiter } = this.service
    if (rateLimiter !== undefined) {
      const { excess, fields } = rateLimiter.admit(request)
      exchange.also(fields)
      if (excess !== undefined) return this.reject(request, exchange, overLimit(excess))
    }
    const match = matcher(request.method, request.path)
    if ("pattern" in match && this.isGuarded(request.method, match.pattern)) exchange.guard()
    switch (match._tag) {
      case "Found": {
        const bodyKind = match.handler.body ?? "none"
        return this.begin({ request, exchange, match, bodyKind })
      }
      case "Options": {
        const { acceptPost, allow } = match
        const isPreflight = request.headers.get("access-control-request-method") !== undefined
        const headers = optionsHeaders(allow, this.service.settings.corsOrigin, isPreflight)
        beginRequestSpan(this.service, request, match.pattern)?.end(204)
        return exchange.reply({
          status: 204,
          headers: acceptPost === undefined ? headers : [...headers, ["Accept-Post", acceptPost]]
        })
      }
      case "MethodNotAllowed": {
        const { allow, pattern } = match
        const detail = `the resource does not answer ${request.method}; ` +
          (advice ?? `use ${allow}`)
        const failure = httpError("method-not-allowed", detail, [["Allow", allow]])
        return this.reject(request, exchange, failure, pattern)
      }
      case "NotFound":
        return this.reject(request, exchange, httpError("not-found", advice))
      case "Malformed":
        return this.reject(request, exchange, httpError("malformed", match.detail))
    }
  }

  /** HEAD is answered as GET, of which it has the fields. */
  private isGuarded(method: string, pattern: string): boolean {
    const guarded = this.guarded.get(pattern)
    if (guarded === undefined) return false
    return guarded === "all" || guarded.includes(method === "HEAD" ? "GET" : method)
  }

  /** Begins to read the body: after this has returned, the server no longer offers it. */
  private begin(routed: Routed): void {
    const { bodyKind, exchange, match, request } = routed
    const { handler, parameters, pattern } = match
    if (bodyKind !== "none" && isCompressed(request)) {
      return this.reject(request, exchange, compressedBody, pattern)
    }
    if (request.method === "PUT" && request.headers.has("content-range")) {
      return this.reject(request, exchange, partialPut, pattern)
    }
    const { documentParser, settings: { baseUrl, contentBytesMax, corsOrigin } } = this.service
    if (isForbiddenOrigin(request, baseUrl, corsOrigin)) {
      return this.reject(request, exchange, forbiddenOrigin, pattern)
    }
    const browser = request.headers.has("cookie") ? browserIdentity(request, baseUrl) : undefined
    if (browser?._tag === "HttpError") return this.reject(request, exchange, browser, pattern)
    const identity = browser ?? identityOf(request)
    const isKeyed = hasIdempotencyKey(request)
    const isDiskLow = handler.storesForAnyone === true && this.service.diskFloor?.isBelow === true
    if (
      !isDiskLow && handler.direct !== undefined && !isKeyed && identity._tag === "Anonymous" &&
      !request.headers.has("authorization")
    ) {
      return handler.direct(request, exchange, parameters)
    }
    const networkOf = () => this.service.clients.clientOf(request).network
    const body = bodyKind === "document"
      ? documentBody(
        exchange,
        documentParser.limits.documentBytesMax,
        networkOf,
        (bytes) => this.service.rateLimiter?.countDocument(request, bytes)
      )
      : bodyKind === "stream"
      ? streamBody(exchange, contentBytesMax, networkOf, isKeyed)
      : noBody
    const fault = bodyKind === "stream" ? body.fault() : undefined
    if (fault?._tag === "NoRoom") {
      return this.reject(request, exchange, streamError(fault, "content"), pattern)
    }
    const call: Call = {
      request: withChoice(request, handler.offer, baseUrl),
      exchange,
      parameters,
      identity,
      ...handler.access === undefined ? {} : { access: handler.access },
      body,
      documentParser,
      ids: randomIds,
      key: undefined,
      ...handler.documentFault === undefined ? {} : { documentFault: handler.documentFault }
    }
    if (identity._tag !== "Browser") return this.run(routed, call, isDiskLow)
    this.runEffect(lookUpBrowser(this.service, identity), (exit) => {
      const known = exit._tag === "Success" ? exit.value : identity
      const request = withViewer(call.request, known)
      this.run(routed, { ...call, identity: known, request }, isDiskLow)
    })
  }

  private run(routed: Routed, call: Call, isDiskLow: boolean): void {
    const { request } = call
    const startedMs = performance.now()
    const { parameters, pattern } = routed.match
    const span = beginRequestSpan(this.service, request, pattern, parameters)
    const handled = handleCall(this.service, routed.match.handler, call)
    const answer = isDiskLow
      ? Effect.andThen(refuseStranger(this.service, call), handled)
      : handled
    this.runEffect(withTraceContext(request, answer, span), (exit) => {
      this.finish(routed, call, exit, (status) => {
        span?.end(status)
        const durationMs = performance.now() - startedMs
        this.onAccess({ method: request.method, route: pattern, status, durationMs })
      })
    })
  }

  private finish(
    { exchange, match }: Routed,
    call: Call,
    exit: Exit.Exit<HandlerAnswer, HandlerFailure>,
    done: (status: number) => void
  ): void {
    const { request } = call
    if (exit._tag === "Success") return this.answer(exchange, call, exit.value, done)
    const reason = exit.cause.reasons.find((one) => one._tag === "Fail")
    if (reason?._tag === "Fail") return done(this.sendFailure(request, exchange, reason.error))
    const log = Effect.logError("a handler failed with a defect", Cause.pretty(exit.cause))
    this.runEffect(
      Effect.annotateLogs(log, { route: match.pattern, method: request.method }),
      () => {}
    )
    done(this.sendFailure(request, exchange, httpError("internal")))
  }

  private answer(
    exchange: Exchange,
    call: Call,
    answer: HandlerAnswer,
    done: (status: number) => void
  ): void {
    switch (answer._tag) {
      case "View":
      case "Plain": {
        const plain = answer._tag === "View"
          ? renderView(answer, call, this.service.settings.baseUrl)
          : answer
        exchange.reply(withoutVaryAccept(call.request, plain))
        return done(plain.status)
      }
      case "Stream": {
        const { headers, holdsPlace = false, lengthBytes, source, status } = answer
        const ended = () => {
          answer.ended?.()
          done(status)
        }
        exchange.replyStream(status, headers, lengthBytes, source, holdsPlace).then(ended, ended)
        return
      }
      case "Events": {
        const place = this.service.openAnswers.take(call.request)
        if (place._tag !== "Taken") {
          return done(this.sendFailure(call.request, exchange, tooManyOpen(place)))
        }
        const events = exchange.events(answer.headers)
        if (events === undefined) return place.release()
        events.onClose(() => {
          place.release()
          done(200)
        })
        answer.start(events)
      }
    }
  }

  private reject(
    request: HttpRequest,
    exchange: Exchange,
    failure: HandlerFailure,
    route = "none"
  ): void {
    const isOverLimit = failure._tag === "HttpError" && failure.problem.slug === "too-many-requests"
    // What exceeds a rate limit has no span: a stranger could crowd out the spans of all others.
    const span = isOverLimit
      ? undefined
      : beginRequestSpan(this.service, request, route === "none" ? undefined : route)
    const send = (by: HttpRequest): void => {
      const status = this.sendFailure(by, exchange, failure)
      span?.end(status)
      this.onAccess({ method: request.method, route, status, durationMs: 0 })
    }
    const browser = browserIdentity(request, this.service.settings.baseUrl)
    if (browser?._tag !== "Browser" || isOverLimit || !isPageRequest(request)) return send(request)
    this.runEffect(lookUpBrowser(this.service, browser), (exit) => {
      send(exit._tag === "Success" ? withViewer(request, exit.value) : request)
    })
  }

  private sendFailure(request: HttpRequest, exchange: Exchange, failure: HandlerFailure): number {
    const rendered = renderFailure(failure, request, this.service.settings.baseUrl)
    exchange.reply(withoutVaryAccept(request, rendered))
    return rendered.status
  }
}

/** The handler of every request, for `listen`. */
export const makeApplication = (
  service: Service,
  routes: ReadonlyArray<Route<ResourceHandler>>,
  runEffect: RunEffect,
  onAccess: (access: AccessRecord) => void
): (request: HttpRequest, exchange: Exchange) => void =>
  new Application(service, routes, runEffect, onAccess).handle
