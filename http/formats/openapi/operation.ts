/** Types and parts of the descriptions of operations; `derivation.ts` adds what methods share. */
import { idempotencyKeyCharsMax, pageEntriesDefault, pageEntriesMax,
  slugCharsMax } from "../../limits.ts"
import type { ProblemSlug } from "../problem-types.ts"
import { formSchema, ref, type Schema, text } from "./schema.ts"

/** The header fields of every cacheable file, beside Content-Type. */
export const cacheHeaders: ReadonlyArray<ResponseHeader> = ["ETag", "Cache-Control"]

/** A file that does not change while the service runs. */
export const fileOperation = (
  id: string,
  summary: string,
  type: string,
  schema: Schema = text
): Operation => ({
  id,
  summary,
  headers: ["If-None-Match"],
  responses: {
    200: { description: "The file", content: { [type]: schema }, headers: cacheHeaders },
    304: emptyResponse("It is as the client has it", ["ETag"])
  }
})

/** Described methods. The document derives HEAD from GET, and adds OPTIONS to every path. */
export type Method = "GET" | "POST" | "PUT" | "DELETE"

/** A row of the routing table: `GET /mailboxes/{mailbox}`. */
export type OperationKey = `${Method} /${string}`

export interface Parameter {
  readonly description: string
  readonly schema: Schema
  readonly required?: boolean
}

/**
 * The credentials of a caller: any account; an account with a role (else 403); the right to read a
 * mailbox; a message's password; or an account or none.
 */
export type CredentialNeeds = "account" | "role" | "reader" | "message" | "anyone"

export interface RequestBodyDescription {
  readonly description?: string
  readonly content: Readonly<Record<string, Schema>>
  readonly required: boolean
  /** A document is read whole, within the bounds of documents; the body of `empty` is not read. */
  readonly kind: "document" | "stream" | "empty"
}

export interface ResponseDescription {
  readonly description: string
  readonly content?: Readonly<Record<string, Schema>>
  /** Its header fields; those with `?` are optional. */
  readonly headers?: ReadonlyArray<ResponseHeader>
  /** Rendered from a view: negotiated by Accept; on GET with an ETag and preconditions. */
  readonly isView?: boolean
}

export interface Operation {
  /** The operationId. */
  readonly id: string
  readonly summary: string
  readonly description?: string
  readonly needs?: CredentialNeeds
  readonly query?: Readonly<Record<string, Parameter>>
  readonly headers?: ReadonlyArray<RequestHeader>
  readonly body?: RequestBodyDescription
  readonly responses: Readonly<Record<number, ResponseDescription>>
  /** Problems beside those that `derivation.ts` derives. */
  readonly problems?: ReadonlyArray<ProblemSlug>
  /** PUT or DELETE without conditions. */
  readonly isUnconditional?: boolean
}

/** The operations of an area, and the schemas that they name. */
export interface OperationGroup {
  readonly tag: string
  readonly about: string
  readonly schemas: Readonly<Record<string, Schema>>
  readonly operations: Readonly<Record<OperationKey, Operation>>
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

/** The document of a schema, in each of the types that every resource is served as. */
export const viewResponse = (
  schema: string,
  description: string,
  headers: ReadonlyArray<ResponseHeader> = [],
  also: Readonly<Record<string, Schema>> = {}
): ResponseDescription => ({
  description,
  content: { ...negotiated(ref(schema)), ...also },
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
  "For a page's form: where to go on",
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

/** A document in any of the accepted types, and the form of a page where there is one. */
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
  kind: "empty"
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

/** Request fields. OpenAPI describes Accept, Content-Type and Authorization in other places. */
export const requestHeaders = {
  "Idempotency-Key": {
    description: "The same key and body again within 24 hours get the same answer, and make "
      + "nothing a second time (draft-ietf-httpapi-idempotency-key-header).",
    schema: { type: "string", minLength: 1, maxLength: idempotencyKeyCharsMax + 2 }
  },
  "If-Match": {
    description: "412 unless one of these entity tags is the resource's (RFC 9110 §13.1.1).",
    schema: text
  },
  "If-None-Match": {
    description: "304 on reading, 412 on changing, when one of these entity tags is the "
      + "resource's (RFC 9110 §13.1.2).",
    schema: text
  },
  "If-Modified-Since": { description: "RFC 9110 §13.1.3.", schema: text },
  "If-Unmodified-Since": { description: "RFC 9110 §13.1.4.", schema: text },
  "If-Range": { description: "RFC 9110 §13.1.5.", schema: text },
  Range: { description: "One range of bytes (RFC 9110 §14.2).", schema: text },
  Prefer: {
    description: "Preferences (RFC 7240): `wait=30` makes a long poll; for a file of customers "
      + "`handling=lenient` and `respond-async`.",
    schema: text
  },
  Slug: { description: "The wished-for name, percent-encoded (RFC 5023 §9.7).", schema: text },
  "Last-Event-ID": {
    description: "Where a stream of events goes on: the id of the last event that came.",
    schema: text
  },
  "Message-Password": {
    description: "Of a new message: 16 or more visible ASCII characters, or `generate`.",
    schema: text
  },
  "Content-Disposition": {
    description: "Kept, and served with the content.",
    schema: text
  },
  traceparent: { description: "W3C Trace Context.", schema: text }
} as const satisfies Readonly<Record<string, Parameter>>

export type RequestHeader = keyof typeof requestHeaders

/** Answer fields. */
export const responseHeaders = {
  Accept: "The types that are accepted in a body here.",
  "Accept-Encoding": "`identity`: a body comes without coding.",
  "Accept-Post": "The types that are accepted in a body here.",
  "Accept-Ranges": "`bytes`.",
  Allow: "The methods of the resource.",
  "Cache-Control": "Who may keep the answer.",
  "Content-Disposition": "Whether it is for showing or for saving.",
  "Content-Location": "The resource that the answer shows.",
  "Content-Range": "Which part it is, and how long the whole.",
  "Content-Security-Policy": "Stored content can never act as this origin.",
  ETag: "The entity tag of this representation, for conditions.",
  "Last-Modified": "When it was changed.",
  Link: "Links (RFC 8288).",
  Location: "The URI of what was made, or where to go on.",
  "Message-Password": "The password that the service chose; shown once.",
  "Notification-Status": "How it stands: `waiting; success=3; retry=1`.",
  "Preference-Applied": "The preferences that were followed (RFC 7240).",
  RateLimit: "How many requests are left (`r`), and in how many seconds all are again (`t`).",
  "RateLimit-Policy": "How many requests (`q`) in how many seconds (`w`) by address or account.",
  "Retry-After": "Seconds after which to try again.",
  Vary: "Request fields that the answer depends on.",
  "WWW-Authenticate": "What may be shown for oneself."
} as const satisfies Readonly<Record<string, string>>

type Field = keyof typeof responseHeaders

/** A field of an answer; with `?` it is optional. */
export type ResponseHeader = Field | `${Field}?`

/** The query parameters of every paged listing. */
export const pagingParameters: Readonly<Record<string, Parameter>> = {
  limit: {
    description: "Entries on a page.",
    schema: {
      type: "integer",
      minimum: 1,
      maximum: pageEntriesMax,
      default: pageEntriesDefault
    }
  },
  after: { description: "The cursor of a `next` link.", schema: text }
}

const slug: Schema = { type: "string", pattern: "^[a-z0-9][a-z0-9-]*$", maxLength: slugCharsMax }

const opaque = (description: string): Parameter => ({ description, schema: text })

/** The path parameters. */
export const pathParameters: Readonly<Record<string, Parameter>> = {
  account: { description: "The account's name.", schema: slug },
  cabinet: opaque("The cabinet's id."),
  content: opaque("The content's id; with `~` and its secret the edit URI."),
  customer: opaque("The customer's id."),
  id: opaque("The actor's id."),
  kind: opaque("The actor's kind."),
  load: opaque("The load's id."),
  mailbox: opaque("The mailbox's name; with `~` and its secret the shared URI."),
  notification: opaque("The notification's id."),
  query: opaque("The query's id; with `~` and its secret the edit URI."),
  receipt: opaque("The receipt's number."),
  registration: opaque("The registration's id."),
  session: opaque("The session's id."),
  slug: opaque("The kind of problem."),
  symbol: opaque("The symbol, such as BRK.B."),
  token: opaque("The token's id.")
}
