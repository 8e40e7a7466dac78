/** One request as a handler sees it, and what a handler answers. */
import { Effect } from "effect"
import { isActorId } from "../../runtime/index.ts"
import type { Identity, IdSource } from "../auth/credentials/index.ts"
import { acceptedBodies, bodyKind, type FormFields, type MediaType, negotiate, parseForm,
  parseFormBody, type ResourceView, standardTypes } from "../formats/index.ts"
import { type DocumentParser, type Element, element } from "../formats/xml/index.ts"
import type { BodyFault, EventStream, Exchange, HttpRequest, RequestBody } from "../wire/index.ts"
import { type HandlerFailure, type HeaderList, type HttpError, httpError } from "./failures.ts"
import type { Parameters } from "./routing.ts"
import { absoluteUri, type Service } from "./service.ts"

/** Whether a browser sent a form, and is to be led to another page. */
export const isPageWanted = ({ request: { headers } }: Call): boolean =>
  headers.get("content-type")?.startsWith("application/x-www-form-urlencoded") === true &&
  negotiate(headers.get("accept"), standardTypes) === "text/html"

export interface Call {
  readonly request: HttpRequest
  readonly exchange: Exchange
  /** What was sent; reading began when the request came. */
  readonly body: RequestBody
  readonly documentParser: DocumentParser
  readonly parameters: Parameters
  /** `Allow` of this path. */
  readonly allow: string
  readonly identity: Identity
  /** Where new ids and secrets come from; the same again for a repeated request. */
  readonly ids: IdSource
}

/** A negotiated answer, from one view. GET answers of it carry an ETag and honor conditions. */
export interface ViewAnswer {
  readonly _tag: "View"
  readonly status: number
  readonly view: ResourceView
  readonly offered?: ReadonlyArray<MediaType>
  readonly headers?: HeaderList
  /** Validators other than the representation's own bytes. */
  readonly lastModifiedMs?: number
}

export type HandlerAnswer =
  | ViewAnswer
  /** Without a body, or with one that is not negotiated. */
  | {
    readonly _tag: "Plain"
    readonly status: number
    readonly headers: HeaderList
    readonly body?: string | Uint8Array
  }
  | {
    readonly _tag: "Stream"
    readonly status: number
    readonly headers: HeaderList
    /** Undefined: it is not known, and the body comes in chunks. */
    readonly lengthBytes: number | undefined
    readonly source: AsyncIterable<Uint8Array>
  }
  /** A stream of server-sent events; `start` gets it when the headers are out. */
  | {
    readonly _tag: "Events"
    readonly headers: HeaderList
    readonly start: (events: EventStream) => void
  }

/** Header fields of an answer that shows a secret, or changes with every request. */
export const noStore: HeaderList = [["Cache-Control", "no-store"]]

/** Header fields of an answer that only the authenticated reader may see. */
export const readerHeaders: HeaderList = [
  ["Vary", "Authorization"],
  ["Cache-Control", "private, no-cache"]
]

export type Handled = Effect.Effect<HandlerAnswer, HandlerFailure>

/** What answers one method of one resource. */
export interface ResourceHandler {
  /** Through the whole machinery: a fiber, negotiation, conditions. */
  readonly handle: (call: Call) => Handled
  /** What of the body is wanted: a document in memory (POST and PUT unless said), or a stream. */
  readonly body?: "document" | "stream" | "none"
  /**
   * The hot path: answers through the exchange by itself, without a fiber. Taken when the request
   * has neither credentials nor an Idempotency-Key.
   */
  readonly direct?: (request: HttpRequest, exchange: Exchange, parameters: Parameters) => void
}

/** A handler that is written as a generator over the service and the call. */
export const defineHandler = (
  run: (service: Service, call: Call) => Effect.fn.Return<HandlerAnswer, HandlerFailure>
): (service: Service) => ResourceHandler["handle"] => {
  const handle = Effect.fnUntraced(run)
  return (service) => (call) => handle(service, call)
}

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

export const emptyAnswer = (status: number, headers: HeaderList = []): HandlerAnswer => ({
  _tag: "Plain",
  status,
  headers
})

/** 303: leads a browser to another page after its form. */
export const seeOther = (service: Service, path: string): HandlerAnswer =>
  emptyAnswer(303, [["Location", absoluteUri(service, path)], ...noStore])

export const viewAnswer = (
  view: ResourceView,
  options: Omit<ViewAnswer, "_tag" | "view" | "status"> & { readonly status?: number } = {}
): HandlerAnswer => ({ _tag: "View", status: 200, ...options, view })

/** The query's fields; malformed ones are a problem. */
export const readQuery = (call: Call): Effect.Effect<FormFields, HttpError> => {
  const parsed = parseForm(call.request.query)
  return parsed.ok
    ? Effect.succeed(parsed.value)
    : Effect.fail(httpError("malformed", `query: ${parsed.fault.detail}`))
}

/** The failure of a document body that did not arrive whole. */
export const bodyError = (fault: BodyFault): HttpError => {
  switch (fault._tag) {
    case "TooLarge":
      return httpError(
        "document-too-large",
        `a document may have at most ${fault.bytesMax} bytes`
      )
    case "Timeout":
      return httpError("request-timeout", "the body did not arrive in time")
    case "Aborted":
      return httpError("malformed", "the body ended before its announced length")
  }
}

/** The whole body. */
export const readBody = (call: Call): Effect.Effect<Uint8Array, HttpError> =>
  Effect.flatMap(call.body.bytes, (outcome) =>
    outcome instanceof Uint8Array
      ? Effect.succeed(outcome)
      : Effect.fail(bodyError(outcome)))

/** A document or a form, as it came in the body. */
export type RequestInput =
  | { readonly _tag: "Document"; readonly root: Element; readonly bytes: Uint8Array }
  | { readonly _tag: "Form"; readonly fields: FormFields; readonly bytes: Uint8Array }

/** 415, with what is accepted. */
export const unsupportedMediaType = (form: boolean, accepted = acceptedBodies(form)): HttpError =>
  httpError("unsupported-media-type", `send one of ${accepted}`, [
    ["Accept-Post", accepted],
    ["Accept", accepted]
  ])

/**
 * Reads the body as the document `rootName`, in XML or JSON, or as a form where there is one.
 * An empty body is an empty document when `mayBeEmpty`.
 */
export const readInput = Effect.fnUntraced(function*(
  call: Call,
  rootName: string,
  options: { readonly form?: boolean; readonly mayBeEmpty?: boolean } = {}
): Effect.fn.Return<RequestInput, HttpError> {
  const contentType = call.request.headers.get("content-type")
  const kind = bodyKind(contentType)
  const form = options.form === true
  const bytes = yield* readBody(call)
  if (bytes.length === 0 && options.mayBeEmpty === true) {
    return { _tag: "Document", root: element(rootName), bytes }
  }
  if (kind === undefined || contentType === undefined || (kind === "form" && !form)) {
    return yield* unsupportedMediaType(form)
  }
  if (kind === "form") {
    const fields = parseFormBody(bytes)
    if (!fields.ok) return yield* httpError("malformed", fields.fault.detail)
    return { _tag: "Form", fields: fields.value, bytes }
  }
  const parsed = kind === "json"
    ? call.documentParser.parseJson(rootName, bytes, contentType)
    : call.documentParser.parseXml(bytes, contentType)
  if (!parsed.ok) {
    const slug = parsed.fault._tag === "TooLarge" ? "document-too-large" : "malformed"
    return yield* httpError(slug, parsed.fault.detail)
  }
  if (parsed.value.name !== rootName) {
    const detail = `the root element must be ${rootName}, not ${parsed.value.name}`
    return yield* httpError("unprocessable", detail)
  }
  return { _tag: "Document", root: parsed.value, bytes }
})

/** Like {@link readInput}, where there is no form. */
export const readDocument = (
  call: Call,
  rootName: string
): Effect.Effect<Element, HttpError> =>
  Effect.map(readInput(call, rootName), (input) => {
    if (input._tag === "Form") throw new Error("a form was read where none is taken")
    return input.root
  })
