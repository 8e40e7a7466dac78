/**
 * Types and parts of the descriptions of operations. `derivation.ts` adds the problems, header
 * fields and security that follow from the method, path and body.
 */
import type { TokenScope } from "../../../actors/account/index.ts"
import { headerValueCharsMax, idempotencyKeyCharsMax, pageEntriesDefault, pageEntriesMax,
  passwordCharsMax, passwordCharsMin, plainTextTagsMax } from "../../limits.ts"
import type { ProblemSlug } from "../problem-types.ts"
import { formSchema, oneOf, ref, type Schema, slug, text, webUri } from "./schema.ts"

/** Described methods. The document derives HEAD from GET, and adds OPTIONS to every path. */
export type Method = "GET" | "POST" | "PUT" | "DELETE"

/** A parameter in the path, the query or the header fields. */
export interface Parameter {
  readonly description: string
  readonly schema: Schema
  readonly required?: boolean
}

/**
 * The credentials that an operation needs, in this order: any account; an account with a role (else
 * 403); the right to read a mailbox; the password of a message; none, though an account may
 * authenticate.
 */
export type CredentialNeeds = "account" | "role" | "reader" | "message" | "anyone"

/** The body of a request. */
export interface RequestBodyDescription {
  readonly description?: string
  readonly content: Readonly<Record<string, Schema>>
  readonly required: boolean
  /** The service reads a `document` whole, within its bounds, and ignores the body of `none`. */
  readonly kind: "document" | "stream" | "none"
}

/** One answer of an operation. */
export interface ResponseDescription {
  readonly description: string
  /** The schemas by media type; without any the answer has no body. */
  readonly content?: Readonly<Record<string, Schema>>
  /** The header fields of the response; those with `?` are optional. */
  readonly headers?: ReadonlyArray<ResponseHeader>
  /** A view is rendered as Accept asks. On GET it has an ETag and honors preconditions. */
  readonly isView?: boolean
}

/** One method of one path, as the OpenAPI document describes it. */
export interface Operation {
  /** The operationId. */
  readonly id: string
  readonly summary: string
  readonly description?: string
  readonly needs?: CredentialNeeds
  /**
   * The scopes of tokens (protocol §7), of which a token needs one. Every operation that `needs`
   * credentials has them, and no other.
   */
  readonly scopes?: ReadonlyArray<TokenScope>
  readonly query?: Readonly<Record<string, Parameter>>
  readonly headers?: ReadonlyArray<RequestHeader>
  readonly body?: RequestBodyDescription
  /** The answers by status; the default is 204 alone. */
  readonly responses?: Readonly<Record<number, ResponseDescription>>
  /** Problems in addition to those that `derivation.ts` derives. */
  readonly problems?: ReadonlyArray<ProblemSlug>
  /** The resource never answers 410, although its path has parameters. */
  readonly isNeverGone?: boolean
  /** It stores nothing for long, such as a sign-in: it works while the disk is nearly full. */
  readonly isPassing?: boolean
  /** The Idempotency-Key of a client without an account has no effect: see `isPassing`. */
  readonly isUnkeyed?: boolean
  /** Whether its answers are guarded, and not those of its path: see {@link OperationGroup}. */
  readonly isGuarded?: boolean
  /**
   * Whether it is served at the origin of `CONTENT_BASE_URL`, where that is set: at no other, or at
   * the service's own too.
   */
  readonly contentOrigin?: "only" | "also"
  /** PUT or DELETE without conditions. */
  readonly isUnconditional?: boolean
}

/** The operations of an area, and the schemas that they name. */
export interface OperationGroup<O extends Operation = Operation> {
  readonly tag: string
  readonly about: string
  /** Whether it is about accounts or the operator's business, which no foreign page may read. */
  readonly isGuarded?: boolean
  readonly schemas: Readonly<Record<string, Schema>>
  /** The operations by method and path, such as `GET /mailboxes/{mailbox}`. */
  readonly operations: Readonly<Record<string, O>>
}

const negotiated = (schema: Schema): Readonly<Record<string, Schema>> => ({
  "application/xml": schema,
  "text/xml": schema,
  "application/json": schema,
  "text/html": text,
  "text/plain": text
})

/** The types of feeds. */
export const feedContent: Readonly<Record<string, Schema>> = {
  "application/atom+xml": { type: "string", description: "Atom (RFC 4287)" },
  "application/rss+xml": { type: "string", description: "RSS 2.0" }
}

/** Server-sent events (WHATWG HTML §9.2). */
export const eventContent = (description: string): Readonly<Record<string, Schema>> => ({
  "text/event-stream": { type: "string", description }
})

/** Any bytes; a generator that knows no media range takes the first type. */
export const bytesContent: Readonly<Record<string, Schema>> = {
  "application/octet-stream": { type: "string", format: "binary" },
  "*/*": { type: "string", format: "binary" }
}

/** An answer with a document of this schema, in every type in which resources are served. */
export const viewResponse = (
  schema: string,
  description: string,
  headers: ReadonlyArray<ResponseHeader> = [],
  moreContent: Readonly<Record<string, Schema>> = {}
): ResponseDescription => ({
  description,
  content: { ...negotiated(ref(schema)), ...moreContent },
  headers,
  isView: true
})

/** An answer without a body. */
export const emptyResponse = (
  description: string,
  headers: ReadonlyArray<ResponseHeader> = []
): ResponseDescription => ({ description, headers })

/** The redirect of a browser after a form. */
export const seeOtherResponse: ResponseDescription = emptyResponse(
  "Redirects the browser that submitted the form",
  [
    "Location",
    "Cache-Control"
  ]
)

const documentTypes = [
  "application/xml",
  "text/xml",
  "text/xml+rss",
  "application/rss+xml",
  "application/json"
]

/** A document in any of the accepted types, or the form of a page if there is one. */
export const documentRequestBody = (
  schema: string,
  options: { readonly form?: Schema; readonly isOptional?: boolean } = {}
): RequestBodyDescription => ({
  content: {
    ...Object.fromEntries(documentTypes.map((type) => [type, ref(schema)])),
    ...options.form === undefined
      ? {}
      : { "application/x-www-form-urlencoded": options.form }
  },
  required: options.isOptional !== true,
  kind: "document"
})

/** The form of a page that has a button only. */
export const buttonRequestBody: RequestBodyDescription = {
  content: { "application/x-www-form-urlencoded": formSchema([]) },
  required: false,
  kind: "none"
}

/** The answer without its HTML type: a browser is redirected instead. */
export const withoutHtml = (answer: ResponseDescription): ResponseDescription => ({
  ...answer,
  content: Object.fromEntries(
    Object.entries(answer.content ?? {}).filter(([type]) => type !== "text/html")
  )
})

/** The form of a page, for a resource that accepts no document. */
export const formRequestBody = (form: Schema): RequestBodyDescription => ({
  content: { "application/x-www-form-urlencoded": form },
  required: true,
  kind: "document"
})

/** A POST that changes or deletes a resource: the forms of its page cannot send PUT or DELETE. */
export const changeByForm = (
  name: string,
  schema: string,
  form: Schema,
  needs: CredentialNeeds,
  scopes: ReadonlyArray<TokenScope>
): Pick<Operation, "id" | "summary" | "needs" | "scopes" | "body" | "problems" | "responses"> => ({
  id: `change${name}ByForm`,
  summary: "Changes the resource, or with `method=delete` removes it, for a page's form",
  needs,
  scopes,
  body: documentRequestBody(schema, { form }),
  problems: ["precondition-failed"],
  responses: { 303: seeOtherResponse }
})

/** Header fields of requests, except those that OpenAPI describes elsewhere, such as Accept. */
export const requestHeaders = {
  "Idempotency-Key": {
    description: "A repetition with the same key and body within 24 hours gets the same answer "
      + "and changes nothing (draft-ietf-httpapi-idempotency-key-header).",
    schema: {
      type: "string",
      pattern: `^("([ !#-\\[\\]-~]|\\\\["\\\\]){1,${idempotencyKeyCharsMax}}"|`
        + `[!#-\\[\\]-~]{1,${idempotencyKeyCharsMax}})$`
    }
  },
  "If-Match": {
    description: "412 unless one of these entity tags is the resource's (RFC 9110 §13.1.1).",
    schema: text
  },
  "If-None-Match": {
    description: "304 to a read and 412 to a change if one of these entity tags is the "
      + "resource's (RFC 9110 §13.1.2).",
    schema: text
  },
  "If-Modified-Since": { description: "RFC 9110 §13.1.3.", schema: text },
  "If-Unmodified-Since": { description: "RFC 9110 §13.1.4.", schema: text },
  "If-Range": { description: "RFC 9110 §13.1.5.", schema: text },
  Range: { description: "One range of bytes (RFC 9110 §14.2).", schema: text },
  Prefer: {
    description: "Preferences (RFC 7240): `wait=30` for a long poll; `handling=lenient` and "
      + "`respond-async` for a file of customers.",
    schema: text
  },
  Slug: { description: "The requested name, percent-encoded (RFC 5023 §9.7).", schema: slug },
  "Last-Event-ID": {
    description:
      "The id of the last event that the client received; the stream continues after it.",
    schema: text
  },
  "Message-Password": {
    description:
      "The password of a new message: 16 or more visible ASCII characters, or `generate`.",
    schema: {
      type: "string",
      pattern: `^(generate|[!-~]{${passwordCharsMin},${passwordCharsMax}})$`
    }
  },
  "Content-Disposition": {
    description: "Stored, and served with the content.",
    schema: { type: "string", pattern: "^[A-Za-z]+ *(;[ -~]*)?$", maxLength: headerValueCharsMax }
  },
  Priority: {
    description: "Of a deposit of plain text: 1 (min) to 5 (max or urgent), in any case.",
    schema: oneOf("1", "min", "2", "low", "3", "default", "4", "high", "5", "max", "urgent")
  },
  Tags: {
    description: `Of a deposit of plain text: at most ${plainTextTagsMax}, between commas.`,
    schema: { type: "string", pattern: `^[ -+.-~-]*(,[ -+.-~-]*){0,${plainTextTagsMax - 1}}$` }
  },
  Click: {
    description: "Of a deposit of plain text: an http or https URI that its reader is to open.",
    // A URI has ASCII alone; generators would send other characters, which a field cannot have.
    schema: { ...webUri, pattern: "^[hH][tT][tT][pP][sS]?://[!\"$-.0->@-~][!-~]*$" }
  },
  traceparent: { description: "W3C Trace Context.", schema: text }
} as const satisfies Readonly<Record<string, Parameter>>

export type RequestHeader = keyof typeof requestHeaders

/** Header fields of answers. */
export const responseHeaders = {
  Accept: "The types that are accepted in a body here.",
  "Accept-Encoding": "`identity`: a body must have no content coding.",
  "Accept-Post": "The types that are accepted in a body here.",
  "Accept-Ranges": "`bytes`.",
  Allow: "The methods of the resource.",
  "Cache-Control": "Which caches may store the answer.",
  "Content-Disposition": "Whether a browser shows the content or saves it.",
  "Content-Location": "The resource that the answer shows.",
  "Content-Range": "The range of bytes, and the length of the whole.",
  "Content-Security-Policy":
    "What a page may load and do; stored content can never act as this origin.",
  Discarded:
    "`true`: what followed `since` has been removed; the listing goes on with what is kept.",
  ETag: "The entity tag of this representation, for conditions.",
  "Last-Modified": "The time of the last change.",
  Link: "Links (RFC 8288).",
  Location: "The URI of the new resource, or the target of the redirect.",
  "Message-Password": "The password that the service chose; shown once.",
  "Notification-Status": "The status and its counts: `waiting; success=3; retry=1`.",
  "Preference-Applied": "The preferences that were followed (RFC 7240).",
  RateLimit: "The remaining requests (`r`), and the seconds until all are available again (`t`).",
  "RateLimit-Policy":
    "The allowed requests (`q`) in a number of seconds (`w`) for an address or account.",
  "Retry-After": "Seconds after which the client may retry.",
  "Clear-Site-Data": "The browser forgets what scripts of the pages have stored.",
  "Set-Cookie": "The cookie of a browser that is signed in; an empty one signs it out.",
  Vary: "Request fields that the answer depends on.",
  "WWW-Authenticate": "The accepted authentication schemes.",
  "X-Accel-Buffering": "`no`: a proxy must pass on the events at once.",
  "X-Robots-Tag": "`noindex` at a secret URI: search engines must not list it."
} as const satisfies Readonly<Record<string, string>>

type ResponseHeaderName = keyof typeof responseHeaders

/** A header field of an answer; with `?` it is optional. */
export type ResponseHeader = ResponseHeaderName | `${ResponseHeaderName}?`

const limit: Parameter = {
  description: "Entries on a page.",
  schema: { type: "integer", minimum: 1, maximum: pageEntriesMax, default: pageEntriesDefault }
}

/** The query parameters of listings in the order of receipt. */
export const sinceParameters: Readonly<Record<string, Parameter>> = {
  since: {
    description: "The `time` of an earlier answer, or a time of RFC 3339.",
    schema: { ...text, minLength: 1 }
  },
  limit
}

/** The query parameters of all other paged listings. */
export const pagingParameters: Readonly<Record<string, Parameter>> = {
  limit,
  after: { description: "The cursor of a `next` link.", schema: { ...text, minLength: 1 } }
}

/** No text in a path has a slash, a backslash or a control character, also not encoded. */
const segment: Schema = { type: "string", pattern: "^[^\\u0000-\\u001f\\u007f/\\\\]+$" }

const textParameter = (description: string): Parameter => ({ description, schema: segment })

/** The path parameters. */
export const pathParameters: Readonly<Record<string, Parameter>> = {
  account: { description: "The account's name.", schema: slug },
  browserSession: textParameter("The id of a browser's session."),
  block: textParameter("The block's id."),
  cabinet: textParameter("The cabinet's id."),
  content: textParameter("The content's id; with `~` and its secret the edit URI."),
  customer: textParameter("The customer's id."),
  file: textParameter("The name of the file."),
  id: textParameter("The actor's id."),
  kind: textParameter("The actor's kind."),
  load: textParameter("The load's id."),
  mailbox: textParameter("The mailbox's name; with `~` and its secret the shared URI."),
  notification: textParameter("The notification's id."),
  page: textParameter("The name of the page."),
  query: textParameter("The query's id; with `~` and its secret the edit URI."),
  receipt: textParameter("The receipt's number."),
  registration: textParameter("The registration's id."),
  report: textParameter("The report's id."),
  resource: textParameter("The name of the resource, as in the tags of this document."),
  session: textParameter("The session's id."),
  slug: textParameter("The kind of problem."),
  symbol: textParameter("The symbol, such as BRK.B."),
  token: textParameter("The token's id.")
}
