/** How a file that never changes while the service runs is described and answered. */
import { Effect } from "effect"
import { entityTag } from "../../formats/index.ts"
import { emptyResponse, type Operation, type ResponseHeader,
  type Schema } from "../../formats/openapi/index.ts"
import { fixedMaxAgeSeconds } from "../../limits.ts"
import { type Call, emptyAnswer, evaluatePreconditions, type Handled,
  httpError } from "../../pipeline/index.ts"
import type { ReplyHeaders } from "../../wire/index.ts"

/** The field of a file that browsers and caches may keep. */
export const cacheable = [["Cache-Control", `public, max-age=${fixedMaxAgeSeconds}`]] as const

/** A file in one type. */
export interface FixedFile {
  readonly type: string
  readonly bytes: Uint8Array
  readonly etag: string
  readonly headers: ReplyHeaders
}

/** A file of this content, with its entity tag. */
export const makeFile = (
  type: string,
  content: string | Buffer,
  headers: ReplyHeaders
): FixedFile => {
  const bytes = typeof content === "string" ? Buffer.from(content) : content
  const etag = entityTag(Buffer.concat([Buffer.from(type), bytes]))
  return { type, bytes, etag, headers: [["ETag", etag], ...headers] }
}

/** The file, or 304 or 412 by the preconditions of the request (RFC 9110 §13). */
export const answerFile = ({ request }: Call, file: FixedFile): Handled => {
  const { bytes, etag, headers, type } = file
  switch (evaluatePreconditions(request.method, request.headers, { exists: true, etag })) {
    case "failed":
      return Effect.fail(httpError("precondition-failed"))
    case "not-modified":
      return Effect.succeed(emptyAnswer(304, headers))
    case "proceed":
      return Effect.succeed({
        _tag: "Plain",
        status: 200,
        headers: [["Content-Type", type], ...headers],
        body: bytes
      })
  }
}

/** The description of a file, with the schema of each of its types. */
export const fileOperation = (
  id: string,
  summary: string,
  content: Readonly<Record<string, Schema>>,
  headers: ReadonlyArray<ResponseHeader> = []
): Operation => ({
  id,
  summary,
  headers: ["If-Match", "If-None-Match"],
  problems: ["precondition-failed"],
  responses: {
    200: { description: "The file", content, headers: ["ETag", "Cache-Control", ...headers] },
    304: emptyResponse("The client has the current file", [
      "ETag",
      "Cache-Control",
      ...headers
    ])
  }
})
