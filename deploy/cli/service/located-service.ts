/** The service of a command with its credentials, whose account is one of that service. */
import { Effect } from "effect"
import type { CommandFailed } from "../../command-failure.ts"
import { isTerminal, readSecret } from "../../secret-input.ts"
import type { ServiceFlags } from "../flags.ts"
import { ownAccountOf } from "./own-resource.ts"
import { questionOf, resolveService, type ServiceLocation, type TokenRole,
  wrongUsage } from "./service-location.ts"

/**
 * The service for a role, with a token if there is one. Without a service of a flag or a variable,
 * `origin`, that of a URI, is the service. If that is not the current context's, it receives only a
 * token of a flag, which the user means for whatever service the command calls.
 */
export const locateService = Effect.fnUntraced(function*(
  flags: ServiceFlags,
  role: TokenRole,
  origin?: string
): Effect.fn.Return<ServiceLocation, CommandFailed> {
  const { account, baseUrl: found, context, token } = yield* resolveService(flags, role)
  const isOfContext = context !== undefined && found.from === `context ${context.name}`
  const isExplicit = isOfContext
    ? context.selection !== "current context"
    : found.from !== "default"
  const baseUrl = isExplicit ? found.value : origin ?? found.value
  if (baseUrl !== found.value && token?.source !== "flag") return { baseUrl, token: undefined }
  return { baseUrl, token: token?.value, account: yield* ownAccountOf({ baseUrl }, account) }
})

/** The service for a role, whose token `where` has. */
const requireToken = (role: TokenRole, where: string) =>
  Effect.fnUntraced(function*(
    flags: ServiceFlags
  ): Effect.fn.Return<ServiceLocation, CommandFailed> {
    const located = yield* locateService(flags, role)
    const { account, baseUrl, token } = located
    if (token !== undefined) return located
    if (isTerminal()) {
      return { account, baseUrl, token: yield* readSecret("-", questionOf(role, account)) }
    }
    return yield* wrongUsage(
      `there is no token of an ${role} for ${baseUrl}`,
      `set ${where}, use --token-file, or add a context with a token (restante context add)`
    )
  })

/** The service for an admin. */
export const asAdmin = requireToken("admin", "ADMIN_TOKEN or RESTANTE_TOKEN")

/** The service for the account of a token. */
export const asAccount = requireToken("account", "RESTANTE_TOKEN")
