/** Locates the service of a command, and calls it by the client library. */
import { Effect, Option, Redacted } from "effect"
import { parseUrl } from "../../actors/index.ts"
import { type Client, connect, ConnectionError, pathOf, ProblemError,
  UnexpectedAnswer } from "../../client/index.ts"
import { CommandFailed, exitCodes, failed, reasonOf } from "../command-failure.ts"
import { isTerminal, readSecret } from "../secret-input.ts"
import { baseUrlOf } from "../settings/index.ts"
import { loadSettingsOf, type ServiceFlags } from "./flags.ts"

/** The failure of a wrong command line. */
export const wrongUsage = (message: string): CommandFailed => failed(message, exitCodes.usage)

/** The failure for a response of another program. */
export const notUnderstood = (): CommandFailed =>
  failed("the service's response is not understood; is it restante?")

/** The service, and the token for it. */
export interface ServiceLocation {
  readonly baseUrl: string
  readonly token: Redacted.Redacted | undefined
}

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
  { baseUrl, token }: ServiceLocation,
  use: (client: Client, signal: AbortSignal) => Promise<A>,
  messages?: Readonly<Record<number, string>>
): Effect.Effect<A, CommandFailed> =>
  Effect.tryPromise({
    try: (signal) => {
      const credentials = token === undefined ? {} : { token: Redacted.value(token) }
      return use(connect({ url: baseUrl, ...credentials, attempts: 1, signal }), signal)
    },
    catch: (error) => failureOf(error, messages)
  })

type Role = "admin" | "account"

const tokenOfEnvironment = (): Redacted.Redacted | undefined => {
  const value = process.env["RESTANTE_TOKEN"]?.trim()
  return value === undefined || value === "" ? undefined : Redacted.make(value)
}

const questionOf = (role: Role): string => `Token of an ${role}`

/** A service, and where its address and token come from. */
interface FoundService extends ServiceLocation {
  /** Whether BASE_URL or its flag names it. */
  readonly isExplicit: boolean
  /** The token of the flag. */
  readonly tokenOfFlag: Redacted.Redacted | undefined
}

/**
 * The service of the flags and the environment. An admin's token is ADMIN_TOKEN before
 * RESTANTE_TOKEN, which may be that of an account without the role; for an account it is reversed.
 */
export const locateService = Effect.fnUntraced(function*(
  { "base-url": baseUrl, "token-file": tokenFile }: ServiceFlags,
  role: Role
): Effect.fn.Return<FoundService, CommandFailed> {
  const { settings } = yield* loadSettingsOf(baseUrl === undefined ? {} : { "base-url": baseUrl })
  const tokenOfFlag = Option.isNone(tokenFile)
    ? undefined
    : yield* readSecret(tokenFile.value, questionOf(role))
  const variables = [tokenOfEnvironment(), settings.adminToken]
  const ordered = role === "admin" ? variables.toReversed() : variables
  const found = tokenOfFlag ?? ordered.find((token) => token !== undefined)
  if (found !== undefined && !/^[\x21-\x7e]+$/.test(Redacted.value(found))) {
    return yield* wrongUsage("a token is visible ASCII characters without spaces")
  }
  return {
    baseUrl: baseUrlOf(settings, settings.port),
    isExplicit: settings.baseUrl !== undefined,
    token: found,
    tokenOfFlag
  }
})

/** The service for a role, whose token `variable` has. */
const requireToken = (role: Role, variable: string) =>
  Effect.fnUntraced(function*(
    flags: ServiceFlags
  ): Effect.fn.Return<ServiceLocation, CommandFailed> {
    const service = yield* locateService(flags, role)
    if (service.token !== undefined) return service
    if (isTerminal()) return { ...service, token: yield* readSecret("-", questionOf(role)) }
    return yield* wrongUsage(`an ${role}'s token is needed: set ${variable}, or use --token-file`)
  })

/** The service for an admin. */
export const asAdmin = requireToken("admin", "ADMIN_TOKEN or RESTANTE_TOKEN")

/** The service for the account of a token. */
export const asAccount = requireToken("account", "RESTANTE_TOKEN")

/** The URI of a mailbox that is given by its URI or its name. */
export const mailboxUri = (nameOrUri: string, { baseUrl }: ServiceLocation): string =>
  /^[a-z0-9][a-z0-9-]{0,63}$/.test(nameOrUri) ? `${baseUrl}/mailboxes/${nameOrUri}` : nameOrUri

/** The path of a URI of the service, where it matches the pattern. */
export const pathMatching = (uri: string, pattern: RegExp): string | undefined => {
  const path = parseUrl(uri) !== undefined || uri.startsWith("/") ? pathOf(uri) : ""
  return pattern.test(path) ? path : undefined
}
