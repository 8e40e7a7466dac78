/**
 * How a request fails: `httpError` is a problem of the catalog in `formats/problem-types.ts`, and
 * `toHttpError` maps every other failure of a handler to one. `formats/problem.ts` renders it.
 */
import { Data, Effect } from "effect"
import type { Reason } from "../../actors/index.ts"
import type { AskFailure, BlobAborted, BlobMissing, BlobTooLarge,
  Refusal } from "../../runtime/index.ts"
import { accountChallenge, makeProblem, type ProblemDocument, type ProblemExtensions,
  type ProblemSlug } from "../formats/index.ts"
import type { Excess, NetworkPlace } from "../rates/index.ts"
import type { ReplyHeaders } from "../wire/index.ts"

/** A request fails with this problem; `headers` are added to the answer. */
export class HttpError extends Data.TaggedError("HttpError")<{
  readonly problem: ProblemDocument
  readonly headers: ReplyHeaders
  /** Whether a failure of the service, with a status from 500 on, has certainly changed nothing. */
  readonly changedNothing?: boolean
}> {}

/** Everything that a handler may fail with. */
export type HandlerFailure = HttpError | AskFailure | BlobTooLarge | BlobMissing | BlobAborted

const noHeaders: ReplyHeaders = []

export const httpError = (
  slug: ProblemSlug,
  detail?: string,
  headers: ReplyHeaders = noHeaders,
  extensions?: ProblemExtensions
): HttpError => new HttpError({ problem: makeProblem(slug, detail, extensions), headers })

/** 429: the request is over a limit (protocol §7). */
export const overLimit = ({ detail, policy, waitMs }: Excess): HttpError =>
  httpError("too-many-requests", detail, retryAfter(waitMs), { "violated-policies": [policy] })

/** 429 or 503: too many event streams and long polls are open, or too many queries run. */
export const tooManyOpen = (
  place: Exclude<NetworkPlace, { readonly _tag: "Taken" }>
): HttpError =>
  place._tag === "NetworkFull"
    ? overLimit(place.excess)
    : httpError("overloaded", place.detail, retryAfter(place.retryMs))

/** 507: below the floor of free disk space nothing is stored without an account (protocol §7). */
export const diskLow: HttpError = httpError(
  "disk-low",
  "the disk of the service has less free space than DISK_FREE_MIN, so requests without an account "
    + "store nothing; send the request with an account, or after the operator has freed space"
)

/** 422: a valid document whose content breaks a rule. */
export const unprocessable = (detail: string): Effect.Effect<never, HttpError> =>
  Effect.fail(httpError("unprocessable", detail))

/**
 * The link to the first page of a listing. The answer to a request has its query in it, see
 * {@link firstPageOf}.
 */
export const firstPage: ReplyHeaders = [["Link", "<?>; rel=\"first\""]]

/** The parameters of a listing that are positions in it. */
const positionParameters: ReadonlyArray<string> = ["since", "before", "after"]

/** The link to the first page of the listing of this query: its filters and format, no position. */
export const firstPageOf = (query: string): ReplyHeaders[number] => {
  const others = [...new URLSearchParams(query)]
    .filter(([name]) => !positionParameters.includes(name))
  return ["Link", `<?${new URLSearchParams(others)}>; rel="first"`]
}

/** 400: a cursor that the resource has not given out; the Link leads to the first page. */
export const unknownCursor = (name: string, resource: string): HttpError =>
  httpError(
    "unknown-cursor",
    `${name} is no position of this ${resource}: it comes from another one, or from before a ` +
      `restore; read without ${name}, and continue from that answer`,
    firstPage
  )

/** 413: the limit of content, which an operator sets. */
export const contentTooLarge = (what: string, bytesMax: number, sizeBytes?: number): HttpError => {
  const size = sizeBytes === undefined ? "more" : `${sizeBytes} bytes`
  return httpError(
    "payload-too-large",
    `${what} may have at most ${bytesMax} bytes (CONTENT_BYTES_MAX), and this has ${size}: send ` +
      "less, or divide it"
  )
}

const retryAfter = (ms: number): ReplyHeaders => [
  ["Retry-After", String(Math.max(1, Math.ceil(ms / 1000)))]
]

/** The problem for a failure of a handler. */
export const toHttpError = (failure: HandlerFailure): HttpError => {
  switch (failure._tag) {
    case "HttpError":
      return failure
    case "Overloaded":
    case "NoOwner":
      return httpError("overloaded", undefined, retryAfter(failure.retryAfterMs))
    case "Quarantined":
      return httpError("quarantined", undefined, retryAfter(failure.retryAfterMs))
    case "StorageFull":
      return httpError(
        "storage-full",
        `the store is full; the operator must free space${
          failure.mayBeStored === true ? "; a change may have been stored" : ""
        }`
      )
    case "StorageUnavailable":
    case "AskTimeout":
      return httpError(
        "storage-unavailable",
        "the store did not answer in time; a change may have been stored"
      )
    case "BlobTooLarge":
      return contentTooLarge("content", failure.bytesMax)
    case "MessageTooLarge":
      return httpError(
        "payload-too-large",
        `a message between nodes may have at most ${failure.bytesMax} bytes, which is what ` +
          "max_payload of the NATS servers leaves: send less"
      )
    case "ValueTooLarge":
      return httpError(
        "payload-too-large",
        "a value is larger than the store takes, whose limit is max_payload of the NATS servers: " +
          "send less"
      )
    case "BlobMissing":
      return httpError("not-found")
    case "BlobAborted":
      return httpError(
        "malformed",
        "the body ended before its announced length and nothing was stored; send it again"
      )
    case "StorageCorrupted":
    case "ActorDefect":
    case "UnknownMessage":
      return httpError("internal")
  }
}

const slugOf: Readonly<Record<Reason, ProblemSlug>> = {
  NotFound: "not-found",
  Gone: "gone",
  Taken: "conflict",
  Unauthenticated: "unauthenticated",
  Forbidden: "forbidden",
  Blocked: "blocked",
  QuotaExceeded: "quota-exceeded",
  Full: "conflict",
  Busy: "overloaded",
  PreconditionFailed: "precondition-failed",
  OutOfOrder: "conflict",
  Ended: "conflict",
  Invalid: "unprocessable",
  Superseded: "conflict",
  LastAdmin: "conflict"
}

/**
 * The challenges of a 401 (protocol §0), each in a separate field: Chromium reads one challenge
 * per field and shows no login dialog if a second one follows.
 */
export const challenges: ReplyHeaders = [
  ["WWW-Authenticate", accountChallenge],
  ["WWW-Authenticate", "Bearer"]
]

/** A challenge with the reason of an error (RFC 6750 §3). */
const bearerError = (error: string, reason: string, more = ""): string => {
  // RFC 6750 §3: the quoted string may not hold other characters.
  const description = reason.replace(/[^\x20-\x21\x23-\x5b\x5d-\x7e]/g, "")
  return `Bearer realm="restante", error="${error}", error_description="${description}"${more}`
}

/** 401 with `invalid_token`, for a Bearer token that is not accepted (RFC 6750 §3.1). */
export const invalidTokenError = (reason: string): HttpError =>
  httpError("unauthenticated", reason, [
    ["WWW-Authenticate", accountChallenge],
    ["WWW-Authenticate", bearerError("invalid_token", reason)]
  ])

/** 403 with `insufficient_scope`, for a token that is not for this request (RFC 6750 §3.1). */
export const insufficientScope = (detail: string, scope: string): HttpError =>
  httpError("insufficient-scope", detail, [
    ["WWW-Authenticate", bearerError("insufficient_scope", detail, `, scope="${scope}"`)]
  ], { scope })

/** The check that a refusal without a detail has failed; nobody learns who the owner is. */
const checkOf: Partial<Readonly<Record<Reason, string>>> = {
  Unauthenticated: "this is for the account that owns it, or for whoever has its password: send an "
    + "account's name and token, or the password",
  Forbidden: "the account of this request does not own this: use the account that does"
}

/** The problem of an actor's refusal for which the protocol defines no other answer. */
export const refusalError = (refusal: Refusal): HttpError => {
  // Every behavior of this service refuses through `deny`, which takes a `Reason`.
  const reason = refusal.reason as Reason
  return httpError(
    slugOf[reason],
    refusal.detail ?? checkOf[reason],
    reason === "Unauthenticated" ? challenges : noHeaders
  )
}
