/**
 * The application: every request goes through here. Routing, credentials, repeated requests, the
 * handler, and the one place where an answer or a failure goes out.
 */
import { Cause, Effect, type Exit, Tracer } from "effect"
import { identityOf, randomIds } from "./auth/credentials/index.ts"
import { isCrossSiteRequest } from "./auth/index.ts"
import { type Keyed, keyedRequest, once } from "./idempotency.ts"
import { type Call, compileRoutes, type HandlerAnswer, type HandlerFailure, httpError,
  type Parameters, renderAnswer, type Rendered, renderFailure, type ResourceHandler, type Route,
  type Service } from "./pipeline/index.ts"
import { documentBody, type Exchange, type HttpRequest, noBody, preflightHeaders, type RequestBody,
  streamBody } from "./wire/index.ts"

const pattern =
  /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(?:$|-)/

/** Runs a request's effect within its trace: what it asks of other nodes is told of it. */
export const withTraceContext = <A, E>(
  { headers }: HttpRequest,
  effect: Effect.Effect<A, E>
): Effect.Effect<A, E> => {
  const given = headers.get("traceparent")
  if (given === undefined) return effect
  const [, traceId, spanId, flags] = pattern.exec(given) ?? []
  if (traceId === undefined || spanId === undefined) return effect
  const sampled = (Number.parseInt(flags ?? "", 16) & 1) === 1
  return Effect.withParentSpan(effect, Tracer.externalSpan({ traceId, spanId, sampled }))
}

/** The header, as it may be passed on. */
export const traceparentOf = ({ headers }: HttpRequest): string | undefined => {
  const given = headers.get("traceparent")
  return given === undefined ? undefined : pattern.exec(given)?.[0].slice(0, 55)
}

/* The trace that a request belongs to (W3C Trace Context §3.2); another header is as none. */

/** Runs a request's effect in the service's context: its logger and clock. */
export type RunEffect = <A, E>(
  effect: Effect.Effect<A, E>,
  observer: (exit: Exit.Exit<A, E>) => void
) => void

/** What one request was, for the log and the measures; no secret in it. */
export interface AccessRecord {
  readonly method: string
  /** The pattern of the path, such as `/mailboxes/{mailbox}`. */
  readonly route: string
  readonly status: number
  readonly durationMs: number
}

const send = (exchange: Exchange, { body, headers, status }: Rendered): void =>
  exchange.reply({ status, headers, body })

const wantedBody = (handler: ResourceHandler, method: string): "document" | "stream" | "none" =>
  handler.body ?? (method === "POST" || method === "PUT" ? "document" : "none")

/** Whether the body is compressed: it would be read, or served again, as what it is not. */
const isCoded = ({ headers }: HttpRequest): boolean => {
  const coding = headers.get("content-encoding")
  return coding !== undefined && coding.trim().toLowerCase() !== "identity"
}

/** RFC 9110 §15.5.16. */
const codedBody = httpError(
  "unsupported-media-type",
  "a body is taken without Content-Encoding only",
  [
    ["Accept-Encoding", "identity"]
  ]
)

/** Reads a stream to its end, for its digest. */
const drained = (body: RequestBody): Effect.Effect<void, HandlerFailure> =>
  Effect.tryPromise({
    try: async () => {
      for await (const chunk of body.stream) void chunk
    },
    catch: () => httpError("malformed", "the body ended before its announced length")
  })

class Application {
  private readonly service: Service
  private readonly match: ReturnType<typeof compileRoutes<ResourceHandler>>
  private readonly run: RunEffect
  private readonly onAccess: (access: AccessRecord) => void

  constructor(
    service: Service,
    routes: ReadonlyArray<Route<ResourceHandler>>,
    run: RunEffect,
    onAccess: (access: AccessRecord) => void
  ) {
    this.service = service
    this.match = compileRoutes(routes)
    this.run = run
    this.onAccess = onAccess
  }

  readonly handle = (request: HttpRequest, exchange: Exchange): void => {
    const { rateLimiter } = this.service
    if (rateLimiter !== undefined) {
      const { fields, refusal } = rateLimiter.admit(request)
      exchange.also(fields)
      if (refusal !== undefined) return this.refuse(request, exchange, refusal, "none")
    }
    const found = this.match(request.method, request.path)
    switch (found._tag) {
      case "Found":
        return this.found(request, exchange, found)
      case "Options": {
        const { corsOrigin } = this.service.settings
        const { acceptPost } = found
        const headers = preflightHeaders(found.allow, corsOrigin)
        return send(exchange, {
          status: 204,
          headers: acceptPost === undefined ? headers : [...headers, ["Accept-Post", acceptPost]]
        })
      }
      case "MethodNotAllowed":
        return this.refuse(
          request,
          exchange,
          httpError(
            "method-not-allowed",
            `${request.method} is not among ${found.allow}`,
            [["Allow", found.allow]]
          ),
          found.pattern
        )
      case "NotFound":
        return this.refuse(request, exchange, httpError("not-found"), "none")
      case "Malformed":
        return this.refuse(request, exchange, httpError("malformed", found.detail), "none")
    }
  }

  private found(
    request: HttpRequest,
    exchange: Exchange,
    match: {
      readonly handler: ResourceHandler
      readonly parameters: Parameters
      readonly allow: string
      readonly pattern: string
    }
  ): void {
    const { allow, handler, parameters, pattern } = match
    const { headers } = request
    const wanted = wantedBody(handler, request.method)
    if (wanted !== "none" && isCoded(request)) {
      return this.refuse(request, exchange, codedBody, pattern)
    }
    const isKeyed = request.method === "POST" && headers.has("idempotency-key")
    if (handler.direct !== undefined && !isKeyed && !headers.has("authorization")) {
      return handler.direct(request, exchange, parameters)
    }
    if (isCrossSiteRequest(request, this.service.settings.baseUrl)) {
      return this.refuse(
        request,
        exchange,
        httpError("forbidden", "another site's page may not act with this browser's credentials"),
        pattern
      )
    }
    const { documentParser, settings: { contentBytesMax } } = this.service
    const body = wanted === "document"
      ? documentBody(exchange, documentParser.limits.documentBytesMax)
      : wanted === "stream"
      ? streamBody(exchange, contentBytesMax, isKeyed)
      : noBody
    const identity = identityOf(request)
    const call: Call = {
      request,
      exchange,
      parameters,
      allow,
      identity,
      body,
      documentParser,
      ids: randomIds
    }
    this.perform(call, handler, pattern)
  }

  private perform(call: Call, handler: ResourceHandler, route: string): void {
    const { exchange, request } = call
    const { service } = this
    const { baseUrl } = service.settings
    const startedMs = performance.now()
    const effect = Effect.flatMap(
      keyedRequest(service, call),
      (keyed): Effect.Effect<HandlerAnswer | Rendered, HandlerFailure> =>
        keyed === undefined ? handler.handle(call) : this.keyed(call, handler, keyed)
    )
    this.run(withTraceContext(request, effect), (exit) => {
      const done = (status: number): void =>
        this.onAccess({
          method: request.method,
          route,
          status,
          durationMs: performance.now() - startedMs
        })
      if (exit._tag === "Success") {
        const { value } = exit
        const rendered = "_tag" in value ? renderAnswer(value, call, baseUrl) : value
        if (rendered !== undefined) {
          send(exchange, rendered)
          return done(rendered.status)
        }
        if ("_tag" in value) this.stream(exchange, value, done)
        return
      }
      const reason = exit.cause.reasons.find((one) => one._tag === "Fail")
      const failure = reason?._tag === "Fail" ? reason.error : httpError("internal")
      if (reason === undefined) {
        this.run(
          Effect.logError("a handler broke", Cause.pretty(exit.cause)).pipe(
            Effect.annotateLogs({ route, method: request.method })
          ),
          () => {}
        )
      }
      done(this.sendFailure(request, exchange, failure))
    })
  }

  private keyed(
    call: Call,
    handler: ResourceHandler,
    keyed: Keyed
  ): Effect.Effect<Rendered, HandlerFailure> {
    const { service } = this
    const { body } = call
    const isStream = wantedBody(handler, call.request.method) === "stream"
    const runFor = (digest: string) =>
      Effect.map(handler.handle({ ...call, ids: keyed.idsFor(digest) }), (answer) => {
        const rendered = renderAnswer(answer, call, service.settings.baseUrl)
        if (rendered === undefined) throw new Error("a POST answered with a stream")
        return rendered
      })
    // What a stream brings is known only at its end, when its ids are long in use.
    return isStream
      ? once(service, keyed, body.digest, drained(body), runFor("stream"))
      : Effect.flatMap(
        body.bytes,
        () => once(service, keyed, body.digest, Effect.void, runFor(body.digest()))
      )
  }

  private stream(exchange: Exchange, answer: HandlerAnswer, done: (status: number) => void): void {
    if (answer._tag === "Stream") {
      const { headers, lengthBytes, source, status } = answer
      exchange.replyStream(status, headers, lengthBytes, source).then(
        () => done(status),
        () => done(status)
      )
    } else if (answer._tag === "Events") {
      const events = exchange.events(answer.headers)
      if (events !== undefined) {
        answer.start(events)
        events.onClose(() => done(200))
      }
    }
  }

  private refuse(
    request: HttpRequest,
    exchange: Exchange,
    failure: HandlerFailure,
    route: string
  ): void {
    const status = this.sendFailure(request, exchange, failure)
    this.onAccess({ method: request.method, route, status, durationMs: 0 })
  }

  private sendFailure(request: HttpRequest, exchange: Exchange, failure: HandlerFailure): number {
    const rendered = renderFailure(failure, request, this.service.settings.baseUrl)
    send(exchange, rendered)
    return rendered.status
  }
}

/** The handler of every request, for `listen`. */
export const makeApplication = (
  service: Service,
  routes: ReadonlyArray<Route<ResourceHandler>>,
  run: RunEffect,
  onAccess: (access: AccessRecord) => void
): (request: HttpRequest, exchange: Exchange) => void =>
  new Application(service, routes, run, onAccess).handle
