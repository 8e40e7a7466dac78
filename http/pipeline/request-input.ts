/** Reads the input of a request: its query, its body and the page of a listing. */
import { Effect } from "effect"
import type { PageLink } from "../formats/html/index.ts"
import { acceptedBodies, bodyKind, type FormFields, parseForm,
  parseFormBody } from "../formats/index.ts"
import { documentTooLarge, type Element, element, type RuleFault,
  type XmlFault } from "../formats/xml/index.ts"
import { pageEntriesDefault, pageEntriesMax, uploadBytesPerSecondMin } from "../limits.ts"
import type { BodyFault, ReplyHeaders } from "../wire/index.ts"
import type { Call } from "./call.ts"
import { contentTooLarge, firstPage, HttpError, httpError } from "./http-error.ts"

/**
 * The fields of the query. Fails with 400 if it is malformed, or if it has two values for a field
 * that is not in `repeatable`: neither may win silently.
 */
export const readQuery = (
  call: Call,
  repeatable: ReadonlyArray<string> = []
): Effect.Effect<FormFields, HttpError> => {
  const parsed = parseForm(call.request.query)
  if (!parsed.ok) return Effect.fail(httpError("malformed", `query: ${parsed.fault}`))
  const names = parsed.value.entries().map(([name]) => name)
  const repeated = names.find((name, at) => names.indexOf(name) < at && !repeatable.includes(name))
  return repeated === undefined
    ? Effect.succeed(parsed.value)
    : Effect.fail(httpError("malformed", `query: ${repeated} may be given once; send one value`))
}

/** Seconds for people. */
const secondsText = (ms: number): string => `${Math.max(0.1, Math.round(ms / 100) / 10)} s`

const unfinishedRetry: ReplyHeaders = [["Retry-After", "2"]]

type Fault<Tag extends BodyFault["_tag"]> = Extract<BodyFault, { readonly _tag: Tag }>

/** 408: of a document, or of an upload that was too slow. */
const timeoutError = ({ afterMs }: Fault<"Timeout">, rule: string): HttpError =>
  httpError(
    "request-timeout",
    `the body of the request did not arrive in time: ${rule} within ${
      secondsText(afterMs)
    }, less ` +
      "while many other bodies are unfinished; nothing was stored, send the request again",
    unfinishedRetry
  )

const unfinished = (detail: string): HttpError => {
  const { problem } = httpError("overloaded", detail)
  return new HttpError({ problem, headers: unfinishedRetry, changedNothing: true })
}

/** 503: a limit of unfinished bodies is reached. */
const shortageError = ({ shortage: { bytesMax, isOfFiles, of } }: Fault<"NoRoom">): HttpError => {
  const whose = of === "the service" ? of : `the clients of ${of}`
  const what = isOfFiles === true
    ? `the uploads of ${whose} that wait in files`
    : `the unfinished bodies of ${whose}`
  return unfinished(
    `${what} take ${bytesMax} bytes, which is the limit: nothing was stored, send the request ` +
      "again after Retry-After seconds"
  )
}

const fileFaults: Readonly<Record<Fault<"FileFailed">["why"], string>> = {
  DiskLow: "the disk of the service has less free space than DISK_FREE_MIN, and the upload " +
    "arrived faster than it is stored: nothing was stored, send it more slowly, or after the " +
    "operator has freed space",
  Unwritable: "the upload arrived faster than it is stored, and the disk of DATA_DIR refused the " +
    "rest of it: nothing was stored, send it again after Retry-After seconds; if that fails, the " +
    "operator must free space or check the disk",
  Unreadable: "the upload arrived faster than it is stored, and the disk of DATA_DIR did not " +
    "return all of it: nothing was stored, send it again after Retry-After seconds; if that " +
    "fails, the operator must check the disk"
}

/** 503: the file in which an upload waits failed. */
const fileError = ({ why }: Fault<"FileFailed">): HttpError => unfinished(fileFaults[why])

const abortedError = httpError(
  "malformed",
  "the body ended before its announced length, and nothing was stored; send it again"
)

/** The failure of a document body that did not arrive completely. */
export const bodyError = (fault: BodyFault): HttpError => {
  switch (fault._tag) {
    case "TooLarge":
      return httpError("document-too-large", documentTooLarge(fault.bytesMax, fault.sizeBytes))
    case "Timeout":
      return timeoutError(fault, "a document must be complete")
    case "NoRoom":
      return shortageError(fault)
    case "FileFailed":
      return fileError(fault)
    case "Aborted":
      return abortedError
  }
}

/** The failure of a stream that ended early; `what` names what may not be larger. */
export const streamError = (fault: BodyFault, what: string): HttpError => {
  switch (fault._tag) {
    case "TooLarge":
      return contentTooLarge(what, fault.bytesMax, fault.sizeBytes)
    case "Timeout":
      return timeoutError(fault, `an upload must bring ${uploadBytesPerSecondMin} bytes a second`)
    case "NoRoom":
      return shortageError(fault)
    case "FileFailed":
      return fileError(fault)
    case "Aborted":
      return abortedError
  }
}

/** The whole body; fails with 400, 408 or 413. */
export const readBody = (call: Call): Effect.Effect<Uint8Array, HttpError> =>
  Effect.flatMap(call.body.bytes, (outcome) =>
    outcome instanceof Uint8Array
      ? Effect.succeed(outcome)
      : Effect.fail(bodyError(outcome)))

/** The document or form in the body. */
export type RequestInput =
  | { readonly _tag: "Document"; readonly root: Element; readonly bytes: Uint8Array }
  | { readonly _tag: "Form"; readonly fields: FormFields; readonly bytes: Uint8Array }

/** The failure of a document that is not accepted; the problem names a broken rule. */
export const documentError = (fault: XmlFault | RuleFault): HttpError => {
  switch (fault._tag) {
    case "TooLarge":
      return httpError("document-too-large", fault.detail)
    case "Malformed":
      return httpError("malformed", fault.detail)
    case "OtherCharset":
      return httpError("unsupported-media-type", fault.detail)
    case "ActiveMarkup":
      return httpError("unprocessable", fault.detail, [], { rule: "active-markup" })
    case "RuleBroken":
      return httpError("unprocessable", fault.detail, [], { rule: fault.rule })
  }
}

/**
 * 415 to a method; its `Accept` lists the accepted types (RFC 9110 §15.5.16). `Accept-Post` is
 * about POST alone (W3C LDP §7.1).
 */
export const unsupportedMediaType = (
  method: string,
  accepted: string,
  detail = `send one of ${accepted}`
): HttpError =>
  httpError("unsupported-media-type", detail, [
    ...method === "POST" ? [["Accept-Post", accepted] as const] : [],
    ["Accept", accepted]
  ])

/**
 * Reads the body as the document `rootName` in XML or JSON, or as a form if `form` allows it. With
 * `mayBeEmpty` an empty body is an empty document. Fails with 400, 408, 413, 415 or 422.
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
    return yield* unsupportedMediaType(call.request.method, acceptedBodies(form))
  }
  if (kind === "form") {
    const fields = parseFormBody(bytes)
    if (!fields.ok) return yield* httpError("malformed", fields.fault)
    return { _tag: "Form", fields: fields.value, bytes }
  }
  const parsed = kind === "json"
    ? call.documentParser.parseJson(rootName, bytes, contentType)
    : call.documentParser.parseXml(bytes, contentType)
  if (!parsed.ok) return yield* documentError(parsed.fault)
  if (parsed.value.name !== rootName) {
    const detail = `the root element must be ${rootName}, not ${parsed.value.name}`
    return yield* httpError("unprocessable", detail)
  }
  const fault = call.documentFault?.(parsed.value)
  if (fault !== undefined) return yield* httpError("unprocessable", fault)
  return { _tag: "Document", root: parsed.value, bytes }
})

/** {@link readInput} where no form is accepted. */
export const readDocument = (
  call: Call,
  rootName: string
): Effect.Effect<Element, HttpError> =>
  Effect.map(readInput(call, rootName), (input) => {
    if (input._tag === "Form") throw new Error("readInput returned a form that was not allowed")
    return input.root
  })

/** The method that a form of a page stands for: HTML has neither PUT nor DELETE; 422 for others. */
export const readFormMethod = Effect.fnUntraced(function*<const Method extends string>(
  call: Call,
  rootName: string,
  methods: ReadonlyArray<Method>
): Effect.fn.Return<{ readonly method: Method; readonly input: RequestInput }, HttpError> {
  const input = yield* readInput(call, rootName, { form: true })
  const field = input._tag === "Form" ? input.fields.get("method") : undefined
  const method = methods.find((one) => one === field)
  return method === undefined
    ? yield* httpError("unprocessable", `method must be ${methods.join(" or ")}, in a form`)
    : { method, input }
})

/** The requested part of a listing; `after` is the cursor of a `next` link. */
export interface PageRequest {
  readonly limit: number
  readonly after: string | undefined
}

/** `limit` of a query; undefined for an empty one or none, 400 for an invalid one. */
export const readLimit = (query: FormFields): Effect.Effect<number | undefined, HttpError> => {
  // Browsers send empty fields of a form.
  const limit = query.get("limit") || undefined
  return limit !== undefined && (!/^[1-9]\d{0,8}$/.test(limit) || Number(limit) > pageEntriesMax)
    ? Effect.fail(
      httpError("malformed", `limit must be a whole number from 1 to ${pageEntriesMax}`)
    )
    : Effect.succeed(limit === undefined ? undefined : Number(limit))
}

/** Reads `limit` and `after` of the query; fails with 400 if either is invalid. */
export const readPageRequest = Effect.fnUntraced(function*(
  call: Call,
  isCursor: (text: string) => boolean
): Effect.fn.Return<PageRequest, HttpError> {
  const query = yield* readQuery(call)
  const after = query.get("after")
  const limit = yield* readLimit(query)
  return after !== undefined && !isCursor(after)
    ? yield* httpError(
      "malformed",
      "after is no cursor of this listing; follow the link of a page, or read without after",
      firstPage
    )
    : { limit: limit ?? pageEntriesDefault, after }
})

/** The link to the page after the last of `keys`; none if this page is not full. */
export const nextLink = (
  address: string,
  { limit }: PageRequest,
  keys: ReadonlyArray<string>
): ReadonlyArray<PageLink> => {
  const last = keys.at(-1)
  if (last === undefined || keys.length < limit) return []
  const query = `limit=${limit}&after=${encodeURIComponent(last)}`
  return [{ rel: "next", href: `${address}?${query}`, title: "Next page" }]
}
