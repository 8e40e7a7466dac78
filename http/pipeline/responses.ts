/** Renders a handler's answer: negotiation, validators, preconditions, problems. */
import { Effect } from "effect"
import { contextTypes, entityTag, type FormatChoice, formatsOf, hasEntityTag, linkHeader,
  type MediaType, negotiate, pageCaching, pageReaderOf, problemReply, render, type RenderContext,
  represent, representationLinks, type ResourceView, standardTypes } from "../formats/index.ts"
import { linkFieldCharsMax } from "../limits.ts"
import { pause } from "../query-engine/index.ts"
import type { HttpRequest, ReplyHeaders } from "../wire/index.ts"
import { type Call, emptyAnswer, isRead, type PlainAnswer, type ViewAnswer } from "./call.ts"
import { firstPage, firstPageOf, type HandlerFailure, httpError,
  toHttpError } from "./http-error.ts"
import { evaluatePreconditions, httpDate, parseHttpDate } from "./preconditions.ts"

/** `no-cache`, unless the answer already has a `Cache-Control`. */
const cacheField = (headers: ReplyHeaders): ReplyHeaders =>
  headers.some(([name]) => name === "Cache-Control") ? [] : [["Cache-Control", "no-cache"]]

const notAcceptable = (request: HttpRequest, offered: ReadonlyArray<MediaType>, baseUrl: string) =>
  renderFailure(
    httpError("not-acceptable", `there is ${offered.join(", ")}`, [], { available: offered }),
    request,
    baseUrl
  )

/** A view where it is shown: a representation of its own URI has links to the others. */
const contextOf = (
  { links = [] }: ResourceView,
  request: HttpRequest,
  choice: FormatChoice | undefined,
  type: MediaType
): RenderContext => ({
  path: request.path,
  // Only a page needs it.
  get reader() {
    return pageReaderOf(request)
  },
  links: choice === undefined ? links : representationLinks(links, choice, type)
})

/**
 * The fields that name representations: Link, and the URI of the one that Accept has chosen (RFC
 * 9110 §8.7). If the field is too long, it has fewer links than the page or feed: not the other
 * representations, and then not the representation itself, as in the pages of a large cabinet.
 */
const linkFields = (
  { links: ownLinks = [] }: ResourceView,
  choice: FormatChoice | undefined,
  { links }: RenderContext
): ReplyHeaders => {
  // Those of the view are first, then the representation itself.
  let link: string | undefined
  let shown: RenderContext["links"] = []
  for (const count of [links.length, ownLinks.length + 1, ownLinks.length]) {
    shown = links.slice(0, count)
    link = linkHeader(shown)
    if (link === undefined || link.length <= linkFieldCharsMax) break
  }
  const fields: Array<ReplyHeaders[number]> = link === undefined ? [] : [["Link", link]]
  const self = shown[ownLinks.length]
  return choice === undefined || choice.format !== undefined || self?.type === undefined
    ? fields
    : [["Content-Location", self.href], ...fields]
}

/** The fields with conditions of a read (RFC 9110 §13.1). */
const conditionFields = ["if-match", "if-none-match", "if-modified-since", "if-unmodified-since"]

const fieldOf = ({ headers }: PlainAnswer, name: string): string | undefined =>
  headers.find(([field]) => field === name)?.[1]

/** The 304 in place of an answer: its fields, but no content (RFC 9110 §15.4.5). */
export const notModifiedOf = ({ headers }: PlainAnswer): PlainAnswer =>
  emptyAnswer(304, headers.filter(([name]) => name !== "Content-Type"))

/**
 * The answer to a GET or HEAD under the conditions of the request (RFC 9110 §13.1): itself, 304 or
 * 412. `answer` is what the request would get without them; only one with an ETag has conditions.
 * `notModified` is its 304, where that is known.
 */
export const underConditions = (
  answer: PlainAnswer,
  { request }: Pick<Call, "request">,
  baseUrl: string,
  notModified?: PlainAnswer
): PlainAnswer => {
  if (!isConditionalRead(request)) return answer
  const etag = fieldOf(answer, "ETag")
  if (etag === undefined) return answer
  const modified = fieldOf(answer, "Last-Modified")
  const modifiedMs = modified === undefined ? undefined : parseHttpDate(modified)
  const state = { exists: true, etag, modifiedMs }
  switch (evaluatePreconditions(request.method, request.headers, state)) {
    case "proceed":
      return answer
    case "not-modified":
      return notModified ?? notModifiedOf(answer)
    case "failed":
      return renderFailure(httpError("precondition-failed"), request, baseUrl)
  }
}

/** A view as an answer; the answer to a GET has an ETag and may become 304 or 412. */
export const renderView = (
  answer: ViewAnswer,
  call: Pick<Call, "request">,
  baseUrl: string
): PlainAnswer => underConditions(renderWhole(answer, call, baseUrl), call, baseUrl)

/** The same without the conditions of the request. */
export const renderWhole = (
  answer: ViewAnswer,
  call: Pick<Call, "request">,
  baseUrl: string
): PlainAnswer => {
  const { request } = call
  const { choice } = request
  if (choice?.fault !== undefined) {
    return renderFailure(httpError("malformed", choice.fault), request, baseUrl)
  }
  const offered = answer.offered ?? standardTypes
  const type = negotiate(request.headers.get("accept"), offered)
  // A 406 would mean that nothing was done; after a change the default type is used instead.
  if (type === undefined && isRead(request.method)) {
    return notAcceptable(request, offered, baseUrl)
  }
  const isShown = isRead(request.method) && answer.status === 200
  const shownChoice = isShown ? choice : undefined
  const shownType = type ?? "application/xml"
  const context = contextOf(answer.view, request, shownChoice, shownType)
  const { bytes, contentType, etag } = represent(answer.view, shownType, context)
  const shared: ReplyHeaders = [
    ["Vary", "Accept"],
    ...cacheField(answer.headers ?? []),
    ...answer.headers ?? [],
    ...linkFields(answer.view, shownChoice, context)
  ]
  const headers = shownType === "text/html"
    ? [...pageCaching(shared, pageReaderOf(request))]
    : [...shared]
  if (isShown) {
    headers.push(["ETag", etag])
    if (answer.lastModifiedMs !== undefined) {
      headers.push(["Last-Modified", httpDate(answer.lastModifiedMs)])
    }
  }
  headers.push(["Content-Type", contentType])
  return { _tag: "Plain", status: answer.status, headers, body: bytes }
}

/** Makes the entity tag of each representation of a view at the path of the call. */
const tagMakersOf = (
  { request }: Pick<Call, "request">,
  { offered, view }: OfferedView
): ReadonlyArray<() => string> => {
  const { choice } = request
  return offered.flatMap((type) => {
    const [format] = formatsOf([type])
    // Other types have the same bytes at every URI.
    const hasContext = contextTypes.includes(type)
    const choices = choice === undefined || format === undefined || !hasContext
      ? [choice]
      : [choice, { ...choice, format }]
    return choices.map((one) => () =>
      entityTag(Buffer.from(render(view, type, contextOf(view, request, one, type))), type)
    )
  })
}

/** The strong entity tags of all representations of a view at the path of the call. */
export const entityTags = (
  call: Pick<Call, "request">,
  view: ResourceView,
  offered: ReadonlyArray<MediaType> = standardTypes
): ReadonlyArray<string> => tagMakersOf(call, { view, offered }).map((makeTag) => makeTag())

/** A view, and the types in which the resource offers it. */
interface OfferedView {
  readonly view: ResourceView
  readonly offered: ReadonlyArray<MediaType>
}

/**
 * The same for pages of notifications, each of which takes long to render: other work goes on
 * between two of them. Where the conditions name no tag that this service can have made, no page is
 * read, and the one tag returned stands for all: they compare with it as with any other.
 */
export const entityTagsOfPages = Effect.fnUntraced(function*(
  call: Pick<Call, "request">,
  pages: Effect.Effect<ReadonlyArray<OfferedView>, HandlerFailure>
): Effect.fn.Return<ReadonlyArray<string>, HandlerFailure> {
  const { headers } = call.request
  if (!hasEntityTag(headers.get("if-match")) && !hasEntityTag(headers.get("if-none-match"))) {
    return [entityTag(new Uint8Array())]
  }
  const makers = (yield* pages).flatMap((page) => tagMakersOf(call, page))
  return yield* Effect.forEach(makers, (makeTag) => Effect.map(pause, makeTag))
})

/**
 * Whether the conditions of a PUT or DELETE hold (RFC 9110 §13.1). `tags` are those of all current
 * representations of the resource; undefined if it does not exist.
 */
export const preconditionsHold = (
  call: Call,
  tags: ReadonlyArray<string> | undefined,
  modifiedMs?: number
): boolean => {
  const { headers, method } = call.request
  if (tags === undefined) {
    return evaluatePreconditions(method, headers, { exists: false }) === "proceed"
  }
  const [first] = tags
  const outcomeOf = (etag: string | undefined) =>
    evaluatePreconditions(method, headers, { exists: true, etag, modifiedMs })
  // If-Match holds if any representation's tag is named, If-None-Match if none of them is.
  return headers.has("if-match")
    ? tags.some((etag) => outcomeOf(etag) === "proceed")
    : first === undefined || tags.every((etag) => outcomeOf(etag) === "proceed")
}

const isConditionalRead = ({ headers, method }: HttpRequest): boolean =>
  isRead(method) && conditionFields.some((name) => headers.has(name))

/** Whether a request has a precondition, so that the current state must be read first. */
export const isConditional = (call: Call): boolean => {
  const { headers } = call.request
  return headers.has("if-match") || headers.has("if-none-match") ||
    headers.has("if-unmodified-since")
}

/** The current state of a resource; `tags` are undefined if it does not exist. */
interface ConditionedState {
  readonly version: number
  readonly tags: ReadonlyArray<string> | undefined
}

/**
 * The version for which the conditions of a request hold. The actor compares the version again, so
 * that no other change precedes this one. Empty for a request without conditions, which does not
 * run `describe`; fails with 412.
 */
export const expectedVersion = (
  call: Call,
  describe: Effect.Effect<ConditionedState, HandlerFailure>
): Effect.Effect<{ readonly ifVersion?: number }, HandlerFailure> =>
  isConditional(call)
    ? Effect.flatMap(describe, ({ tags, version }) =>
      preconditionsHold(call, tags)
        ? Effect.succeed({ ifVersion: version })
        : Effect.fail(conditionFailed))
    : Effect.succeed({})

/** 412 for a change of another version than the current one. */
export const conditionFailed = httpError(
  "precondition-failed",
  "the resource has changed: GET it, and send the change again with its new entity tag"
)

/** A failure as its problem document. */
export const renderFailure = (
  failure: HandlerFailure,
  request: HttpRequest,
  baseUrl: string
): PlainAnswer => {
  const { headers, problem } = toHttpError(failure)
  const [first] = firstPage
  const sent = headers.map((field) => field === first ? firstPageOf(request.query) : field)
  return { _tag: "Plain", ...problemReply(problem, request, baseUrl, sent) }
}
