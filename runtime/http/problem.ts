/**
 * Problem documents of the HTTP face (RFC 9457). The detail says what happened, to what, and what
 * to do; `outcome` says whether the message can have changed the actor.
 */

/**
 * What is known of a message that got no reply. `refused`: the actor decided so. `unchanged`: no
 * actor decided it, or its decision was not stored. `indeterminate`: the actor may have processed
 * it. `committed`: the actor has processed it, and only its reply is lost.
 */
export type MessageOutcome = "refused" | "unchanged" | "indeterminate" | "committed"

/** Each problem, by the last part of its `type`. */
export const problems = {
  "malformed-message": { status: 400, title: "The body is not JSON" },
  unauthenticated: { status: 401, title: "The caller is unknown" },
  forbidden: { status: 403, title: "The caller may not do this" },
  "not-found": { status: 404, title: "Nothing has this path" },
  "method-not-allowed": { status: 405, title: "The path has no such method" },
  refused: { status: 409, title: "The actor refused the message" },
  "message-too-large": { status: 413, title: "The message is too large" },
  "query-too-long": { status: 414, title: "The query is too long" },
  "unsupported-media-type": { status: 415, title: "The body is not of a known media type" },
  "invalid-message": { status: 422, title: "The actor does not take this message" },
  failed: { status: 500, title: "A program of the service failed" },
  unavailable: { status: 503, title: "The actor takes no messages now" },
  "outcome-unknown": { status: 504, title: "It is not known whether the actor changed" },
  "not-stored": { status: 507, title: "The decision could not be stored" }
} as const

export type ProblemName = keyof typeof problems

/** The `type` of a problem is this and its name. */
export const problemTypePrefix = "urn:restante:problem:"

/** The fields of every answer: none of them is stored, and none is a page. */
export const answerHeaders = {
  "cache-control": "no-store",
  "content-security-policy": "sandbox; default-src 'none'",
  "x-content-type-options": "nosniff"
} as const

export interface ProblemParts {
  /** What happened, to what, and what to do. It must not have secrets of the service. */
  readonly detail: string
  readonly outcome: MessageOutcome
  /** Replaces the status of the problem. */
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  /** Members beside the standard ones: JSON values. */
  readonly members?: Readonly<Record<string, unknown>>
}

/** The answer for a problem. */
export const problemResponse = (
  name: ProblemName,
  { detail, headers, members, outcome, status }: ProblemParts
): Response => {
  const { status: usualStatus, title } = problems[name]
  const document = {
    type: problemTypePrefix + name,
    title,
    status: status ?? usualStatus,
    detail,
    outcome,
    ...members
  }
  return new Response(JSON.stringify(document), {
    status: document.status,
    headers: { ...answerHeaders, ...headers, "content-type": "application/problem+json" }
  })
}

/**
 * The answer 401 for `authorize`: who is the caller? `challenge` is the field `WWW-Authenticate`
 * (RFC 9110 §11.6.1), such as `Bearer`.
 */
export const unauthenticated = (challenge: string): Response =>
  problemResponse("unauthenticated", {
    detail: "The request does not say who sends it, or its credentials are wrong: " +
      `send it with the field Authorization for ${challenge}`,
    outcome: "unchanged",
    headers: { "www-authenticate": challenge }
  })
