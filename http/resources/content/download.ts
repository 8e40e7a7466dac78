/** Serving content (A3): the published bytes, whole or in part, unable to run scripts here. */
import { Effect } from "effect"
import type { ContentBody, ContentView } from "../../../actors/content/index.ts"
import { mediaTypeOf } from "../../formats/index.ts"
import { type Call, chooseRange, contentRange, emptyAnswer, emptySource, evaluatePreconditions,
  type HandlerAnswer, type HandlerFailure, httpDate, httpError, isIfRangeSatisfied,
  type Service } from "../../pipeline/index.ts"
import { documentPolicy, type ReplyHeaders } from "../../wire/index.ts"
import { contentAddressOf, describeContent } from "./content-access.ts"
import { acceptPost } from "./receipts.ts"

/** The strong entity tag of a body: 128 bits of its SHA-256. */
export const etagOf = (body: ContentBody): string => `"${body.digest.slice(0, 22)}"`

/** The type of content without a Content-Type (RFC 9110 §8.3). */
export const unnamedType = "application/octet-stream"

/** Types that a browser may display; it saves all others. */
const inlineTypes =
  /^(?:text\/plain|image\/(?:png|jpeg|gif|webp|avif)|audio\/[\w.+-]+|video\/[\w.+-]+)\s*(?:;|$)/i

/** A body may be dated a second ahead; no date later than now is sent (RFC 9110 §8.8.2.1). */
const headersOf = (
  { body, hasPassword, lastModifiedMs }: ContentView,
  nowMs: number
): ReplyHeaders => [
  ["ETag", etagOf(body)],
  ["Last-Modified", httpDate(Math.min(lastModifiedMs, nowMs))],
  ["Cache-Control", hasPassword ? "private, no-cache" : "no-cache"],
  ["Accept-Ranges", "bytes"],
  // Where mailboxes of other services see that the message takes receipts.
  ["Accept-Post", acceptPost],
  // Any page may show what was published.
  ["Cross-Origin-Resource-Policy", "cross-origin"]
]

/**
 * Types that a browser always saves: those of PDF, of which `application/pdf` is only the usual
 * one. Chromium's viewer of PDF runs the scripts of a document, which can show dialogs in the name
 * of the service, and sometimes begins before the sandbox applies.
 */
const savedTypes = /^[^;]*pdf/i

/**
 * The type that browsers get. Of several types with commas between them, as of several fields,
 * Chromium takes the last one. So what could be read as several is only its first part, without
 * parameters, or no type that a browser knows.
 */
const servedType = (type: string): string => {
  if (!type.includes(",")) return type
  const essence = mediaTypeOf(type)
  return essence.includes(",") ? unnamedType : essence
}

/** As its publisher wants, but a type that is always saved keeps only the name of its file. */
const dispositionOf = (type: string, disposition: string | undefined): string => {
  if (disposition === undefined) return inlineTypes.test(type) ? "inline" : "attachment"
  return savedTypes.test(type) ? disposition.replace(/^[^;]*/, "attachment") : disposition
}

const representationHeaders = ({ disposition, type: stored }: ContentBody): ReplyHeaders => {
  const type = servedType(stored)
  return [
    ["Content-Type", type],
    ["Content-Disposition", dispositionOf(type, disposition)],
    ["Content-Security-Policy", documentPolicy]
  ]
}

const open = (
  service: Service,
  call: Call,
  body: ContentBody,
  range?: { readonly start: number; readonly end: number }
) =>
  call.request.method === "HEAD" || body.lengthBytes === 0
    ? Effect.succeed(emptySource)
    : service.blobs.open(body.blobId, range)

const answerOf = Effect.fnUntraced(function*(
  service: Service,
  call: Call,
  view: ContentView
): Effect.fn.Return<HandlerAnswer, HandlerFailure> {
  const { body, lastModifiedMs } = view
  const { headers, method } = call.request
  const state = { exists: true, etag: etagOf(body), modifiedMs: lastModifiedMs }
  const common = headersOf(view, service.nowMs())
  const verdict = evaluatePreconditions(method, headers, state)
  if (verdict === "not-modified") return emptyAnswer(304, common)
  if (verdict === "failed") return yield* httpError("precondition-failed")
  const { lengthBytes } = body
  const range = method === "GET" && isIfRangeSatisfied(headers.get("if-range"), state)
    ? chooseRange(headers.get("range"), lengthBytes)
    : { _tag: "Whole" as const }
  const fields = [...common, ...representationHeaders(body)]
  switch (range._tag) {
    case "Unsatisfiable":
      return yield* httpError("range-not-satisfiable", `the content has ${lengthBytes} bytes`, [
        ["Content-Range", contentRange(lengthBytes)]
      ])
    case "Part":
      return {
        _tag: "Stream",
        status: 206,
        headers: [...fields, ["Content-Range", contentRange(lengthBytes, range)]],
        lengthBytes: range.last - range.first + 1,
        source: yield* open(service, call, body, { start: range.first, end: range.last })
      }
    case "Whole":
      return {
        _tag: "Stream",
        status: 200,
        headers: fields,
        lengthBytes,
        source: yield* open(service, call, body)
      }
  }
})

/** A3. When the body is replaced between its description and its opening, it tries once more. */
export const getContent =
  (service: Service) => (call: Call): Effect.Effect<HandlerAnswer, HandlerFailure> => {
    const attempt = Effect.flatMap(
      contentAddressOf(call),
      (to) =>
        Effect.flatMap(describeContent(service, call, to), (view) => answerOf(service, call, view))
    )
    return Effect.catchTag(attempt, "BlobMissing", () => attempt)
  }
