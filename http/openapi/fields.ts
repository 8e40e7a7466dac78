/** Parameters and header fields that several operations have. */
import { idempotencyKeyCharsMax, pageEntriesDefault } from "../limits.ts"
import { pageEntriesMax, slugCharsMax } from "../limits.ts"
import type { Parameter } from "./operation.ts"
import { type Schema, text } from "./schema.ts"

/** Fields of requests. Accept, Content-Type and Authorization are said in other ways. */
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

/** Fields of answers. */
export const answerHeaders = {
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

type Field = keyof typeof answerHeaders

/** A field that an answer has, or may have. */
export type HeaderName = Field | `${Field}?`

/** What every listing by pages takes. */
export const paging: Readonly<Record<string, Parameter>> = {
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

/** The parameters of paths. */
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
