/** How an area says what its resources take and answer; `derive.ts` adds what holds for all. */
import type { ProblemSlug } from "../problems.ts"
import type { HeaderName, RequestHeader } from "./fields.ts"
import { formOf, ref, type Schema, text } from "./schema.ts"

/** Methods that are described; HEAD follows from GET, and OPTIONS is everywhere. */
export type Method = "GET" | "POST" | "PUT" | "DELETE"

/** A row of the routing table: `GET /mailboxes/{mailbox}`. */
export type OperationKey = `${Method} /${string}`

export interface Parameter {
  readonly description: string
  readonly schema: Schema
  readonly required?: boolean
}

/**
 * What a caller must show: an account; an account that may not be enough (403); what reads a
 * mailbox; a message's password; or an account if there is one.
 */
export type Needs = "account" | "role" | "reader" | "message" | "anyone"

export interface BodyDescription {
  readonly description?: string
  readonly content: Readonly<Record<string, Schema>>
  readonly required: boolean
  /** A document is read whole and has the bounds of documents; of an empty form nothing is read. */
  readonly kind: "document" | "stream" | "empty"
}

export interface AnswerDescription {
  readonly description: string
  readonly content?: Readonly<Record<string, Schema>>
  /** Fields that it has; those with `?` it may have. */
  readonly headers?: ReadonlyArray<HeaderName>
  /** Made of one view: negotiated by Accept, and of GET with its ETag and conditions. */
  readonly isView?: boolean
}

export interface Operation {
  /** The operationId. */
  readonly id: string
  readonly summary: string
  readonly description?: string
  readonly needs?: Needs
  readonly query?: Readonly<Record<string, Parameter>>
  readonly headers?: ReadonlyArray<RequestHeader>
  readonly body?: BodyDescription
  readonly answers: Readonly<Record<number, AnswerDescription>>
  /** Kinds of problems beside those that follow from all else. */
  readonly problems?: ReadonlyArray<ProblemSlug>
  /** PUT or DELETE without conditions. */
  readonly isUnconditional?: boolean
}

/** The operations of an area, and the schemas that they name. */
export interface Area {
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

/** Types beside those of every resource. */
export const feeds: Readonly<Record<string, Schema>> = {
  "application/atom+xml": { type: "string", description: "Atom (RFC 4287)" },
  "application/rss+xml": { type: "string", description: "RSS 2.0" }
}

/** Server-sent events (WHATWG HTML §9.2). */
export const events = (description: string): Readonly<Record<string, Schema>> => ({
  "text/event-stream": { type: "string", description }
})

/** The document of that schema, in each of the types that every resource is served as. */
export const view = (
  schema: string,
  description: string,
  headers: ReadonlyArray<HeaderName> = [],
  also: Readonly<Record<string, Schema>> = {}
): AnswerDescription => ({
  description,
  content: { ...negotiated(ref(schema)), ...also },
  headers,
  isView: true
})

/** An answer without a body. */
export const nothing = (
  description: string,
  headers: ReadonlyArray<HeaderName> = []
): AnswerDescription => ({ description, headers })

/** Where a browser goes after a form. */
export const seeOther: AnswerDescription = nothing("For a page's form: where to go on", [
  "Location",
  "Cache-Control"
])

const documentTypes = [
  "application/xml",
  "text/xml",
  "text/xml+rss",
  "application/rss+xml",
  "application/json"
]

/** A document in any of the accepted types, and the form of a page where there is one. */
export const document = (
  schema: string,
  options: { readonly form?: Schema; readonly isOptional?: boolean } = {}
): BodyDescription => ({
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
export const button: BodyDescription = {
  content: { "application/x-www-form-urlencoded": formOf([]) },
  required: false,
  kind: "empty"
}

/** The same document without a page: a browser goes on to another. */
export const withoutPage = (answer: AnswerDescription): AnswerDescription => ({
  ...answer,
  content: Object.fromEntries(
    Object.entries(answer.content ?? {}).filter(([type]) => type !== "text/html")
  )
})

/** The form of a page, where a document has no meaning. */
export const formBody = (form: Schema): BodyDescription => ({
  content: { "application/x-www-form-urlencoded": form },
  required: true,
  kind: "document"
})
