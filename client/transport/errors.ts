/** The parent of every error of this package. An aborted request throws the signal's reason. */
export class RestanteError extends Error {
  override readonly name: string = "RestanteError"
}

/** No attempt received a complete response. The service may have processed the request. */
export class ConnectionError extends RestanteError {
  override readonly name = "ConnectionError"
  /** Attempts that were made. */
  readonly attempts: number

  constructor(message: string, attempts: number, cause: unknown) {
    super(message, { cause })
    this.attempts = attempts
  }
}

/** The response does not come from restante, or its document is malformed. */
export class UnexpectedAnswer extends RestanteError {
  override readonly name = "UnexpectedAnswer"
}

/** Why a push is not authentic. */
export type SignatureFault = "missing" | "malformed" | "stale" | "wrong" | "too-large"

/** A push that was not signed with the secret, or that is too old. */
export class InvalidSignature extends RestanteError {
  override readonly name = "InvalidSignature"
  readonly fault: SignatureFault

  constructor(fault: SignatureFault, message: string) {
    super(message)
    this.fault = fault
  }
}

/** A problem document (RFC 9457) with the status and Retry-After of its response. */
export type Problem = Pick<
  ProblemError,
  "status" | "type" | "title" | "detail" | "instance" | "retryAfterMs" | "extensions" | "url"
>

/**
 * The service, or a proxy before it, answered with an error status. The service sends a problem
 * document (RFC 9457) with it. The usual statuses have subclasses.
 */
export class ProblemError extends RestanteError {
  override readonly name: string = "ProblemError"
  readonly status: number
  /** A URI that identifies the kind of problem; `about:blank` without a problem document. */
  readonly type: string
  readonly title: string
  readonly detail: string | undefined
  readonly instance: string | undefined
  /** The URI that gave this answer, without its secret part. */
  readonly url: string | undefined
  /** The time of Retry-After, in ms. */
  readonly retryAfterMs: number | undefined
  /** Further members of the document. */
  readonly extensions: Readonly<Record<string, unknown>>
  /**
   * Whether the service may have carried out the request nevertheless: the service failed, a proxy
   * received no response from it, it still processes another attempt with the same key, or an
   * earlier attempt of this request had such an outcome. Otherwise the request has changed nothing.
   */
  readonly isIndeterminate: boolean

  constructor(
    problem: Pick<Problem, "status" | "title"> & Partial<Problem>,
    followsIndeterminate = false
  ) {
    const { detail, status, title } = problem
    super(`${status} ${title}${detail === undefined ? "" : `: ${detail}`}`)
    this.status = status
    this.type = problem.type ?? "about:blank"
    this.title = title
    this.detail = detail
    this.instance = problem.instance
    this.url = problem.url
    this.retryAfterMs = problem.retryAfterMs
    this.extensions = problem.extensions ?? {}
    this.isIndeterminate = followsIndeterminate || mayBeCarriedOut(this)
  }
}

/** Whether the service may have carried out a request that it, or a proxy, answered so. */
const mayBeCarriedOut = ({ retryAfterMs, status, type }: Problem): boolean => {
  if (status === 408) return !type.endsWith("/problems/request-timeout")
  return status === 409 ? retryAfterMs !== undefined : status >= 500
}

/** Its type is short in the declarations of each class. */
type NamedProblem<Name extends string> = new(
  ...problem: ConstructorParameters<typeof ProblemError>
) => ProblemError & { readonly name: Name }

/** The parent of an error class. It keeps the `name` if a bundler renames the class. */
const named = <const Name extends string>(name: Name): NamedProblem<Name> =>
  class extends ProblemError {
    override readonly name = name
  }

/**
 * 400 with the type `unknown-cursor`: the position to continue from is of another resource, or it
 * is older than a restore of the service from a backup. Read from the start, and continue from
 * that answer.
 */
export class UnknownCursor extends named("UnknownCursor") {}

/** 401: the credentials or the message password are missing or wrong. */
export class Unauthenticated extends named("Unauthenticated") {}

/** 403: the account may not do this. */
export class Forbidden extends named("Forbidden") {}

/** 404: there is no such resource, or the secret part of the URI is wrong. */
export class NotFound extends named("NotFound") {}

/** 409: the state of the resource does not allow this, or the name is taken. */
export class Conflict extends named("Conflict") {}

/** 410: the resource was deleted. */
export class Gone extends named("Gone") {}

/** 412: the resource is not in the state that the condition of the request names. */
export class PreconditionFailed extends named("PreconditionFailed") {}

/** 413: the body is too large. */
export class TooLarge extends named("TooLarge") {}

/** 422: the document breaks a rule, which the detail names. */
export class Unprocessable extends named("Unprocessable") {}

/** 429: too many requests; retry after `retryAfterMs`. */
export class TooManyRequests extends named("TooManyRequests") {}

/** 502, 503, 504, 507: the service is temporarily unable to respond. */
export class Unavailable extends named("Unavailable") {}

const classes: Readonly<
  Record<number, new(problem: Problem, followsIndeterminate?: boolean) => ProblemError>
> = {
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

/**
 * The error of a problem, of the class for its status. `followsIndeterminate`: an earlier attempt
 * of the same request had an indeterminate outcome.
 */
export const problemError = (problem: Problem, followsIndeterminate?: boolean): ProblemError => {
  const isUnknownCursor = problem.type.endsWith("/problems/unknown-cursor")
  const ErrorClass = isUnknownCursor ? UnknownCursor : classes[problem.status] ?? ProblemError
  return new ErrorClass(problem, followsIndeterminate)
}
