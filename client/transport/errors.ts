/**
 * What can go wrong, as classes: a service that does not answer, one that refuses (RFC 9457), one
 * that answers what restante does not, and a push whose signature is not good. A request that is
 * aborted by its signal throws the signal's reason instead, as fetch does.
 */
/** The parent of every error of this package. */
export class RestanteError extends Error {
  override readonly name: string = "RestanteError"
}

/** No whole answer came, in as many attempts as were made. What was asked may have been done. */
export class ConnectionError extends RestanteError {
  override readonly name = "ConnectionError"
  /** Attempts that were made. */
  readonly attempts: number

  constructor(message: string, attempts: number, cause: unknown) {
    super(message, { cause })
    this.attempts = attempts
  }
}

/** An answer came, and it is none that restante gives. */
export class UnexpectedAnswer extends RestanteError {
  override readonly name = "UnexpectedAnswer"
}

/** Why a push is not to be believed. */
export type SignatureFault = "missing" | "malformed" | "stale" | "wrong" | "too-large"

/** A push that does not come from who knows the secret, or comes much too late. */
export class InvalidSignature extends RestanteError {
  override readonly name = "InvalidSignature"
  readonly fault: SignatureFault

  constructor(fault: SignatureFault, message: string) {
    super(message)
    this.fault = fault
  }
}

/** A problem document (RFC 9457), and what the answer's fields say beside it. */
export interface Problem {
  readonly status: number
  /** A URI that explains the kind of problem; `about:blank` where there was no document. */
  readonly type: string
  readonly title: string
  readonly detail: string | undefined
  readonly instance: string | undefined
  /** From Retry-After: how long to wait before asking again. */
  readonly retryAfterMs: number | undefined
  /** Further members of the document. */
  readonly extensions: Readonly<Record<string, unknown>>
}

/** The service refused. The classes below are of single statuses; any other is this one itself. */
export class ProblemError extends RestanteError implements Problem {
  override readonly name: string = "ProblemError"
  readonly status: number
  readonly type: string
  readonly title: string
  readonly detail: string | undefined
  readonly instance: string | undefined
  readonly retryAfterMs: number | undefined
  readonly extensions: Readonly<Record<string, unknown>>

  constructor(problem: Problem) {
    const { detail, status, title } = problem
    super(`${status} ${title}${detail === undefined ? "" : `: ${detail}`}`)
    this.status = status
    this.type = problem.type
    this.title = title
    this.detail = detail
    this.instance = problem.instance
    this.retryAfterMs = problem.retryAfterMs
    this.extensions = problem.extensions
  }
}

/** 401: no credentials, or wrong ones; also a message password that is not right. */
export class Unauthenticated extends ProblemError {
  override readonly name = "Unauthenticated"
}

/** 403: known, and not allowed. */
export class Forbidden extends ProblemError {
  override readonly name = "Forbidden"
}

/** 404: nothing is there, or the secret part of the URI is wrong. */
export class NotFound extends ProblemError {
  override readonly name = "NotFound"
}

/** 409: not in the state that it takes; a name that is taken. */
export class Conflict extends ProblemError {
  override readonly name = "Conflict"
}

/** 410: it has been deleted. */
export class Gone extends ProblemError {
  override readonly name = "Gone"
}

/** 412: changed since it was read. */
export class PreconditionFailed extends ProblemError {
  override readonly name = "PreconditionFailed"
}

/** 413: larger than the service takes. */
export class TooLarge extends ProblemError {
  override readonly name = "TooLarge"
}

/** 422: understood, and breaking a rule that the detail names. */
export class Unprocessable extends ProblemError {
  override readonly name = "Unprocessable"
}

/** 429: wait for `retryAfterMs`. */
export class TooManyRequests extends ProblemError {
  override readonly name = "TooManyRequests"
}

/** 502, 503, 504, 507: the service cannot at the moment. */
export class Unavailable extends ProblemError {
  override readonly name = "Unavailable"
}

const classes: Readonly<Record<number, new(problem: Problem) => ProblemError>> = {
  401: Unauthenticated,
  403: Forbidden,
  404: NotFound,
  409: Conflict,
  410: Gone,
  412: PreconditionFailed,
  413: TooLarge,
  422: Unprocessable,
  429: TooManyRequests,
  502: Unavailable,
  503: Unavailable,
  504: Unavailable,
  507: Unavailable
}

/** The error of a problem's status. */
export const problemError = (problem: Problem): ProblemError =>
  new (classes[problem.status] ?? ProblemError)(problem)
