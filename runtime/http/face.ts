/**
 * Actors over HTTP: a function from a request to its answer, which needs no server of its own.
 * `POST <base>/actors/<kind>/<id>` sends a message, `GET` the same for a query, and
 * `GET <base>/openapi.json` describes both.
 */
import { Effect } from "effect"
import { isActorId, type Tagged } from "../actor/index.ts"
import type { ActorNode } from "../definition/index.ts"
import { failureResponse, type RefusalStatuses, replyResponse, type SentMessage,
  unreadableReply } from "./answers.ts"
import { type ApiInfo, openApiDocument } from "./document.ts"
import type { ExposedActor, ReadMessage } from "./expose.ts"
import { mediaTypeFault, parsedJson, readBody } from "./json-body.ts"
import { firstItemOf, LogStreams } from "./log-events.ts"
import { answerHeaders, problemResponse } from "./problem.ts"

/** What a request asks for, for the function that decides whether it may. */
export type HttpAccess<Message extends Tagged = Tagged> =
  /** To send a message; undefined for one that the actor does not take. */
  | {
    readonly _tag: "Ask"
    readonly kind: string
    readonly id: string
    readonly message: Message | undefined
  }
  /** To read and follow the log of an actor. */
  | { readonly _tag: "Log"; readonly kind: string; readonly id: string }
  /** To read the OpenAPI document. */
  | { readonly _tag: "Document" }

/** True: the request may. False: 403. A Response: the answer, such as {@link unauthenticated}. */
export type HttpDecision = boolean | Response

/** The messages of these actors. */
export type ExposedMessages<Actors extends ReadonlyArray<ExposedActor>> = NonNullable<
  Actors[number]["~message"]
>

/** What a face serves, who may use it, and within which limits. */
export interface HttpFaceOptions<Actors extends ReadonlyArray<ExposedActor>> {
  /** What the face serves; each kind once. */
  readonly actors: Actors
  /**
   * Decides on every request for an actor, a log or the document, after its message is read and
   * checked. Who is refused does not learn what was wrong with a message. The body of the request
   * has been read. When it throws, the answer is 500, and nothing is sent to the actor.
   */
  readonly authorize: (
    request: Request,
    access: HttpAccess<ExposedMessages<Actors>>
  ) => HttpDecision | Promise<HttpDecision>
  /** The path before `/actors`, such as `/api`, of `[A-Za-z0-9._~-]+`; none by default. */
  readonly basePath?: string
  /** The title and version of the OpenAPI document. */
  readonly info?: ApiInfo
  /** Bytes of a message, and characters of a query string, at most: 65,536 by default. */
  readonly messageBytesMax?: number
  /** Logs that are followed at once, at most: 1,000 by default. */
  readonly logStreamsMax?: number
  /** The status for a refusal of this reason, from 400 to 499: 409 by default. */
  readonly refusals?: RefusalStatuses
  /** Gets what went wrong in this program, such as an error of `authorize`; logs it by default. */
  readonly onError?: (error: unknown) => void
}

/** Bytes of a message at most, unless the options say otherwise. */
const messageBytesDefaultMax = 64 * 1024
const logStreamsDefaultMax = 1_000

const basePattern = /^(\/[A-Za-z0-9._~-]+)*$/

const logError = (error: unknown): void =>
  Effect.runSync(Effect.logError("a request to an actor over HTTP failed", error))

/** What a path names. */
type Target =
  | { readonly _tag: "Document" }
  | { readonly _tag: "Actor"; readonly actor: ExposedActor; readonly id: string }
  | { readonly _tag: "Log"; readonly actor: ExposedActor; readonly id: string }
  | { readonly _tag: "Nothing"; readonly detail: string }

const decoded = (segment: string): string => {
  try {
    return decodeURIComponent(segment)
  } catch {
    // No name has a percent sign.
    return segment
  }
}

const methodsOf = (target: Target): ReadonlyArray<string> => {
  if (target._tag !== "Actor") return ["GET", "HEAD", "OPTIONS"]
  const { commands, queries } = target.actor
  return [
    ...(queries.length > 0 ? ["GET", "HEAD"] : []),
    ...(commands.length + queries.length > 0 ? ["POST"] : []),
    "OPTIONS"
  ]
}

class HttpFace<Actors extends ReadonlyArray<ExposedActor>> {
  private readonly node: Pick<ActorNode, "ask" | "log">
  private readonly options: HttpFaceOptions<Actors>
  private readonly actors: ReadonlyMap<string, ExposedActor>
  private readonly base: string
  private readonly bytesMax: number
  private readonly document: string
  private readonly streams: LogStreams

  constructor(node: Pick<ActorNode, "ask" | "log">, options: HttpFaceOptions<Actors>) {
    const { actors, basePath = "", info, logStreamsMax, messageBytesMax } = options
    this.node = node
    this.options = options
    this.actors = new Map(actors.map((actor) => [actor.kind, actor]))
    this.base = basePath
    this.bytesMax = messageBytesMax ?? messageBytesDefaultMax
    this.streams = new LogStreams(
      logStreamsMax ?? logStreamsDefaultMax,
      (error) => this.report(error)
    )
    this.assertOptions()
    this.document = JSON.stringify(openApiDocument(actors, { basePath, ...info }))
  }

  /** The answer to a request; never rejects. */
  async handle(request: Request): Promise<Response> {
    try {
      const answer = await this.answer(request)
      return request.method === "HEAD" ? new Response(null, answer) : answer
    } catch (error) {
      this.report(error)
      return problemResponse("failed", {
        detail: "The request failed before an actor received it: the log of the service has the " +
          "cause. Report it to the operator",
        outcome: "unchanged"
      })
    }
  }

  private assertOptions(): void {
    const { actors, refusals = {} } = this.options
    if (this.actors.size < actors.length) {
      throw new TypeError("two actors of a face have the same kind: expose each kind once")
    }
    if (!basePattern.test(this.base)) {
      throw new TypeError(`the base path is ${this.base}: use a path such as /api, or none`)
    }
    const logStreamsMax = this.options.logStreamsMax ?? logStreamsDefaultMax
    for (const [name, max] of Object.entries({ messageBytesMax: this.bytesMax, logStreamsMax })) {
      // Nothing is larger than NaN: it would be no limit.
      if (Number.isSafeInteger(max) && max >= 0) continue
      throw new TypeError(`${name} of a face is ${max}: use an integer from 0`)
    }
    for (const [reason, status] of Object.entries(refusals)) {
      if (Number.isInteger(status) && status >= 400 && status <= 499) continue
      throw new TypeError(
        `a refusal for ${reason} has the status ${status}: use one from 400 to 499`
      )
    }
  }

  private report(error: unknown): void {
    const { onError = logError } = this.options
    try {
      onError(error)
    } catch {
      // The request still gets its answer.
    }
  }

  private targetOf(path: string): Target {
    const nothing = (detail: string): Target => ({ _tag: "Nothing", detail })
    const paths = `${this.base}/actors/<kind>/<id>`
    const unknown = nothing(`Nothing has this path: send messages to ${paths}`)
    if (path === `${this.base}/openapi.json`) return { _tag: "Document" }
    if (!path.startsWith(`${this.base}/actors/`)) return unknown
    const [kind = "", id, part, ...rest] = path.slice(this.base.length + "/actors/".length)
      .split("/").map(decoded)
    const actor = this.actors.get(kind)
    if (id === undefined || rest.length > 0) return unknown
    if (actor === undefined) {
      return nothing(`No actor of this kind is served: use a kind of ${this.base}/openapi.json`)
    }
    if (!isActorId(id)) {
      return nothing("No actor has this id: use 1 to 200 letters, digits, hyphens, _ or =")
    }
    if (part === undefined) return { _tag: "Actor", actor, id }
    return part === "log" && actor.hasLog ? { _tag: "Log", actor, id } : unknown
  }

  private async answer(request: Request): Promise<Response> {
    const url = new URL(request.url)
    const target = this.targetOf(url.pathname)
    if (target._tag === "Nothing") {
      return problemResponse("not-found", { detail: target.detail, outcome: "unchanged" })
    }
    const { method } = request
    const methods = methodsOf(target)
    const allow = methods.join(", ")
    if (method === "OPTIONS") {
      return new Response(null, { status: 204, headers: { ...answerHeaders, allow } })
    }
    if (!methods.includes(method)) {
      const detail = `The path takes no ${method}: use ${methods.join(" or ")}`
      return problemResponse("method-not-allowed", {
        detail,
        headers: { allow },
        outcome: "unchanged"
      })
    }
    switch (target._tag) {
      case "Document":
        return this.sendDocument(request)
      case "Log":
        return this.sendLog(request, url, target)
      case "Actor":
        return this.ask(
          request,
          target,
          method === "POST"
            ? await this.readCommand(request, target.actor)
            : this.readQuery(url, target.actor)
        )
    }
  }

  /** The answer to a request that is not allowed; undefined for one that is. */
  private async refused(request: Request, access: HttpAccess): Promise<Response | undefined> {
    // Messages of the exposed actors are of their types.
    const typed = access as HttpAccess<ExposedMessages<Actors>>
    const decision = await this.options.authorize(request, typed)
    if (decision === true) return undefined
    // A copy: the caller may return the same one each time.
    if (decision instanceof Response) return decision.clone()
    return problemResponse("forbidden", {
      detail: "The caller may not do this: ask the operator of the service for access",
      outcome: "unchanged"
    })
  }

  private async sendDocument(request: Request): Promise<Response> {
    const headers = { ...answerHeaders, "content-type": "application/json" }
    return await this.refused(request, { _tag: "Document" }) ??
      new Response(this.document, { headers })
  }

  private async sendLog(
    request: Request,
    url: URL,
    { actor, id }: Target & { readonly _tag: "Log" }
  ): Promise<Response> {
    const { kind } = actor
    const refused = await this.refused(request, { _tag: "Log", kind, id })
    if (refused !== undefined) return refused
    const from = firstItemOf(request, url)
    if (from === undefined) {
      return problemResponse("invalid-message", {
        detail: `The log of ${kind}/${id} has no such item: use a number from 1 as \`from\`, or ` +
          "the id of an event as Last-Event-ID",
        outcome: "unchanged"
      })
    }
    if (request.method === "HEAD") return this.streams.head()
    return this.streams.follow(`${kind}/${id}`, actor.log(this.node, id, from), request)
  }

  /** The message of a body, or the problem of one that has none. */
  private async readCommand(
    request: Request,
    actor: ExposedActor
  ): Promise<ReadMessage | Response> {
    const mediaType = mediaTypeFault(request)
    if (mediaType !== undefined) {
      return problemResponse("unsupported-media-type", {
        detail: `The body is not read, since ${mediaType}`,
        outcome: "unchanged",
        headers: { "accept-post": "application/json" }
      })
    }
    const body = await readBody(request, this.bytesMax)
    if (body._tag === "TooLarge") {
      return problemResponse("message-too-large", {
        detail: `The body has more than ${this.bytesMax} bytes: send a smaller message`,
        outcome: "unchanged"
      })
    }
    const json = body._tag === "Bytes" ? parsedJson(body.bytes) : undefined
    if (json === undefined) {
      return problemResponse("malformed-message", {
        detail: "The body is not JSON in UTF-8, or ended early: send one object, with its `_tag`",
        outcome: "unchanged"
      })
    }
    return actor.readBody(json)
  }

  /** The message of a query string, or the problem of one that has none. */
  private readQuery(url: URL, actor: ExposedActor): ReadMessage | Response {
    if (url.search.length > this.bytesMax) {
      return problemResponse("query-too-long", {
        detail: `The query string has more than ${this.bytesMax} characters: send a POST`,
        outcome: "unchanged"
      })
    }
    return actor.readQuery(url.searchParams)
  }

  private async ask(
    request: Request,
    { actor, id }: Target & { readonly _tag: "Actor" },
    read: ReadMessage | Response
  ): Promise<Response> {
    const { kind } = actor
    const isRead = !(read instanceof Response) && read._tag === "Read"
    const message = isRead ? read.message : undefined
    const refused = await this.refused(request, { _tag: "Ask", kind, id, message })
    if (refused !== undefined) return refused
    if (read instanceof Response) return read
    if (read._tag === "Invalid") {
      return problemResponse("invalid-message", { detail: read.detail, outcome: "unchanged" })
    }
    const { _tag: tag } = read.message
    const isQuery = actor.queries.some((query) => query.tag === tag)
    return this.send({ key: `${kind}/${id}`, tag, isQuery }, actor, id, read.message)
  }

  private async send(
    sent: SentMessage,
    actor: ExposedActor,
    id: string,
    message: Tagged
  ): Promise<Response> {
    let reply: unknown
    try {
      reply = await actor.ask(this.node, id, message)
    } catch (error) {
      return failureResponse(sent, error)
    }
    try {
      return replyResponse(sent, reply, this.options.refusals ?? {})
    } catch (error) {
      this.report(error)
      return unreadableReply(sent)
    }
  }
}

/**
 * The actors of a node over HTTP. The handler answers every request, and never rejects. Throws a
 * TypeError when the options contradict each other.
 */
export const httpFace = <const Actors extends ReadonlyArray<ExposedActor>>(
  node: Pick<ActorNode, "ask" | "log">,
  options: HttpFaceOptions<Actors>
): (request: Request) => Promise<Response> => {
  const face = new HttpFace(node, options)
  return (request) => face.handle(request)
}
