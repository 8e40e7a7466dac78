/** Whatever a handler may fail with, and the one place where it becomes a problem. */
import { Schema } from "effect"
import type { Reason } from "../../actors/index.ts"
import type { AskFailure, BlobAborted, BlobMissing, BlobTooLarge,
  Refusal } from "../../runtime/index.ts"
import { makeProblem, type ProblemDocument, type ProblemExtensions,
  type ProblemSlug } from "../formats/index.ts"

/** A problem that a handler ends with, and header fields that go with it. */
export class HttpError extends Schema.TaggedError<HttpError>()("Failed", {
  problem: Schema.Unknown,
  headers: Schema.Unknown
}) {}

export type HeaderList = ReadonlyArray<readonly [string, string]>

const noHeaders: HeaderList = []

/** A failure with this problem; see `problems.ts` for the slugs. */
export const httpError = (
  slug: ProblemSlug,
  detail?: string,
  headers: HeaderList = noHeaders,
  extensions?: ProblemExtensions
): HttpError => new HttpError({ problem: makeProblem(slug, detail, extensions), headers })

export type HandlerFailure = HttpError | AskFailure | BlobTooLarge | BlobMissing | BlobAborted

/** A problem with its header fields. */
export interface FailureAnswer {
  readonly problem: ProblemDocument
  readonly headers: HeaderList
}

const retryAfter = (ms: number): HeaderList => [
  ["Retry-After", String(Math.max(1, Math.ceil(ms / 1000)))]
]

const only = (slug: ProblemSlug, detail?: string): FailureAnswer => ({
  problem: makeProblem(slug, detail),
  headers: noHeaders
})

/** The problem of every failure. */
export const toProblem = (failure: HandlerFailure): FailureAnswer => {
  switch (failure._tag) {
    case "Failed":
      // Only `fail` makes these; Schema's class keeps the two fields untyped.
      return {
        problem: failure.problem as ProblemDocument,
        headers: failure.headers as HeaderList
      }
    case "Overloaded":
    case "NoOwner":
      return { problem: makeProblem("overloaded"), headers: retryAfter(failure.retryAfterMs) }
    case "Quarantined":
      return { problem: makeProblem("quarantined"), headers: retryAfter(failure.retryAfterMs) }
    case "StorageFull":
      return only("storage-full", "the service has no room left; nothing was kept")
    case "StorageUnavailable":
    case "AskTimeout":
      return only("storage-unavailable", "the service could not store or read just now")
    case "BlobTooLarge":
      return only("payload-too-large", `content may have ${failure.bytesMax} bytes at the most`)
    case "MessageTooLarge":
      return only("payload-too-large", `a message may have ${failure.bytesMax} bytes at the most`)
    case "BlobMissing":
      return only("not-found")
    case "BlobAborted":
      return only("malformed", "the body ended before its announced length; nothing was kept")
    case "StorageCorrupted":
    case "ActorDefect":
    case "UnknownMessage":
      return only("internal")
  }
}

const slugOf: Readonly<Record<Reason, ProblemSlug>> = {
  NotFound: "not-found",
  Gone: "gone",
  Taken: "conflict",
  Unauthenticated: "unauthenticated",
  Forbidden: "forbidden",
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
 * What a 401 asks for (protocol §0): a line each, since Chromium takes a line for one challenge and
 * asks nobody when another follows in it.
 */
export const challenges: HeaderList = [
  ["WWW-Authenticate", "Basic realm=\"restante\""],
  ["WWW-Authenticate", "Bearer"]
]

/** The challenge to a Bearer token that is not accepted (RFC 6750 §3.1). */
export const invalidTokenError = (why: string): HttpError =>
  httpError("unauthenticated", why, [
    ["WWW-Authenticate", "Basic realm=\"restante\""],
    [
      "WWW-Authenticate",
      // What a quoted string may not hold is left out (RFC 6750 §3).
      `Bearer realm="restante", error="invalid_token", error_description="${
        why.replace(/[^\x20-\x21\x23-\x5b\x5d-\x7e]/g, "")
      }"`
    ]
  ])

/** The failure of a refusal that has no answer of its own in the protocol. */
export const refusalError = (refusal: Refusal): HttpError => {
  // Every refusal of this service's behaviors is made by `deny`, of the closed list.
  const reason = refusal.reason as Reason
  return httpError(
    slugOf[reason],
    refusal.detail,
    reason === "Unauthenticated" ? challenges : noHeaders
  )
}
