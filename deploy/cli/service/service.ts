/** Calls the service of a command by the client library. */
import { Effect, Redacted } from "effect"
import { parseUrl } from "../../../actors/index.ts"
import { type Client, connect, ConnectionError, pathOf, ProblemError,
  UnexpectedAnswer } from "../../../client/index.ts"
import { CommandFailed, exitCodes, failed, reasonOf } from "../../command-failure.ts"
import type { ServiceLocation } from "./service-location.ts"

/** The failure for a response of another program. */
export const notUnderstood = (): CommandFailed =>
  failed("the service's response is not understood; is it restante?")

/** Statuses of a service that is temporarily unable to respond. */
const transientStatuses: ReadonlySet<number> = new Set([429, 502, 503, 504])

/** The failure for an error of the client; `messages` replace those of refusals, by status. */
export const failureOf = (
  error: unknown,
  messages: Readonly<Record<number, string>> = {}
): CommandFailed => {
  if (error instanceof CommandFailed) return error
  if (error instanceof ProblemError) {
    const { message, status } = error
    const isTransient = transientStatuses.has(status)
    return failed(messages[status] ?? message, isTransient ? exitCodes.unavailable : undefined)
  }
  if (error instanceof ConnectionError) return failed(error.message, exitCodes.unavailable)
  if (error instanceof UnexpectedAnswer) return notUnderstood()
  return failed(reasonOf(error))
}

/**
 * Calls the service. Fails with exit code 75 when it does not respond, with 1 when it refuses. Each
 * request has one attempt, as the user can repeat the command.
 */
export const call = <A>(
  { account, baseUrl, token }: ServiceLocation,
  use: (client: Client, signal: AbortSignal) => Promise<A>,
  messages?: Readonly<Record<number, string>>
): Effect.Effect<A, CommandFailed> =>
  Effect.tryPromise({
    try: (signal) => {
      const credentials = token === undefined ? {} : { account, token: Redacted.value(token) }
      return use(connect({ url: baseUrl, ...credentials, attempts: 1, signal }), signal)
    },
    catch: (error) => failureOf(error, messages)
  })

/** The URI of a mailbox that is given by its URI or its name. */
export const mailboxUri = (nameOrUri: string, { baseUrl }: ServiceLocation): string =>
  /^[a-z0-9][a-z0-9-]{0,63}$/.test(nameOrUri) ? `${baseUrl}/mailboxes/${nameOrUri}` : nameOrUri

/** The path of a URI of the service, where it matches the pattern. */
export const pathMatching = (uri: string, pattern: RegExp): string | undefined => {
  const path = parseUrl(uri) !== undefined || uri.startsWith("/") ? pathOf(uri) : ""
  return pattern.test(path) ? path : undefined
}
