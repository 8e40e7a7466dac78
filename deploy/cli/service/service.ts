/** Calls the service of a command by the client library. */
import { Effect, Redacted } from "effect"
import { type Client, connect, ConnectionError, ProblemError,
  UnexpectedAnswer } from "../../../client/index.ts"
import { CommandFailed, exitCodes, failed, failedAs, reasonOf } from "../../command-failure.ts"
import type { ServiceLocation } from "./service-location.ts"

/** The failure for a response of another program. */
export const notUnderstood = (): CommandFailed =>
  failed(
    "the service's response is not understood",
    "is it restante? Correct its address (BASE_URL, --base-url, --context)"
  )

/** Statuses of a service that is temporarily unable to respond. */
const transientStatuses: ReadonlySet<number> = new Set([429, 502, 503, 504])

/** What to do about a refusal whose detail does not say it. */
const adviceByStatus: Readonly<Record<number, string>> = {
  400: "correct the value",
  401: "use a valid token: RESTANTE_TOKEN, --token-file, or a context",
  403: "use the token of an account that has the right",
  404: "correct the name or the URI",
  405: "use another command for this resource",
  408: "see whether it was done, and repeat the command otherwise",
  409: "look at its state, which does not allow this, or choose another name",
  410: "name another one",
  412: "it has changed meanwhile: look at its state, and repeat the command if that still fits",
  413: "send less",
  415: "give another media type",
  422: "correct the value",
  429: "wait, then repeat the command",
  502: "repeat the command when the service responds",
  503: "wait, then repeat the command",
  504: "see whether it was done, and repeat the command otherwise",
  507: "free space at the service, or ask its operator to"
}

/**
 * What happened, in the words of the detail: a title is about every refusal of its kind, and that
 * of 409 names neither a thing nor a fault.
 */
export const problemOf = ({ detail = "", status, title }: ProblemError): string => {
  if (detail !== "") return `${status}: ${detail}`
  return status === 409 ? "409: this is not possible now" : `${status} ${title}`
}

/** The problem and the advice that replace those of a refusal, by status. */
export type Refusals = Readonly<Record<number, readonly [problem: string, advice: string]>>

/** The failure for a refusal: the resource, the problem, and what to do about it. */
const refused = (error: ProblemError, refusals: Refusals): CommandFailed => {
  const { detail = "", status, url = "the service" } = error
  const exitCode = transientStatuses.has(status) ? exitCodes.unavailable : undefined
  // Of a request that the service still carries out, the result follows.
  const general = status === 409 && error.isIndeterminate ? 503 : status
  const [problem, advice] = refusals[status] ?? [problemOf(error), adviceByStatus[general]]
  // Details of the service often end with the advice.
  return refusals[status] === undefined && /[:;] /.test(detail)
    ? failedAs(`${url}: ${problem}`, exitCode)
    : failed(
      `${url}: ${problem}`,
      advice ?? "see whether it was done, and ask the operator of the service",
      exitCode
    )
}

/** The failure for an error of the client. */
export const failureOf = (error: unknown, refusals: Refusals = {}): CommandFailed => {
  if (error instanceof CommandFailed) return error
  if (error instanceof ProblemError) return refused(error, refusals)
  if (error instanceof ConnectionError) {
    return failed(
      error.message,
      "start the service, or correct its address (BASE_URL, --base-url, --context)",
      exitCodes.unavailable
    )
  }
  if (error instanceof UnexpectedAnswer) return notUnderstood()
  return failed(
    `the command ended early, ${reasonOf(error)}`,
    "correct that, and repeat the command"
  )
}

/**
 * Calls the service. Fails with exit code 75 when it does not respond, with 1 when it refuses. Each
 * request has one attempt, as the user can repeat the command.
 */
export const call = <A>(
  { account, baseUrl, token }: ServiceLocation,
  use: (client: Client, signal: AbortSignal) => Promise<A>,
  refusals?: Refusals
): Effect.Effect<A, CommandFailed> =>
  Effect.tryPromise({
    try: (signal) => {
      const credentials = token === undefined ? {} : { account, token: Redacted.value(token) }
      return use(connect({ url: baseUrl, ...credentials, attempts: 1, signal }), signal)
    },
    catch: (error) => failureOf(error, refusals)
  })
