/**
 * Where the service of a command is, and with which account and token the command calls it. Each of
 * the three comes from its flag, or else from its variable, the context, or the default.
 */
import { Effect, Option, Redacted, Schema } from "effect"
import { type CommandFailed, exitCodes, failed } from "../../command-failure.ts"
import { readSecret } from "../../secret-input.ts"
import { baseUrlOf, type LoadedSettings } from "../../settings/index.ts"
import { loadSettingsOf, type ServiceFlags } from "../flags.ts"
import { AccountText } from "../resource-name/index.ts"
import { type Context, contextNamed, readContexts } from "./context-file.ts"

/** The failure of a wrong command line. */
export const wrongUsage = (problem: string, advice: string): CommandFailed =>
  failed(problem, advice, exitCodes.usage)

/** The service, and the credentials for it. */
export interface ServiceLocation {
  readonly baseUrl: string
  /** The account of the token; undefined where the token alone names it. */
  readonly account?: string | undefined
  readonly token: Redacted.Redacted | undefined
}

export type TokenRole = "admin" | "account"

export const questionOf = (role: TokenRole, account?: string): string =>
  `Token of ${account === undefined ? `an ${role}` : `the account ${account}`}`

/** The trimmed text of an environment variable; undefined if it is empty, which counts as unset. */
const variable = (name: string): string | undefined => process.env[name]?.trim() || undefined

/** A value, and for people where it comes from. */
export interface Sourced<A> {
  readonly value: A
  readonly from: string
}

const sourced = <A>(value: A | undefined, from: string): Sourced<A> | undefined =>
  value === undefined ? undefined : { value, from }

/** The context of a command. */
interface SelectedContext extends Context {
  readonly name: string
  /** What selects it: a flag, a variable, or the file, for every command that names none. */
  readonly selection: "flag --context" | "environment RESTANTE_CONTEXT" | "current context"
}

const isOfFlag = (context: SelectedContext | undefined): boolean =>
  context?.selection === "flag --context"

const namedContext = (
  { context }: ServiceFlags
): Pick<SelectedContext, "name" | "selection"> | undefined => {
  const ofFlag = Option.getOrUndefined(context)
  if (ofFlag !== undefined) return { name: ofFlag, selection: "flag --context" }
  const name = variable("RESTANTE_CONTEXT")
  return name === undefined ? undefined : { name, selection: "environment RESTANTE_CONTEXT" }
}

const selectContext = Effect.fnUntraced(function*(
  flags: ServiceFlags
): Effect.fn.Return<SelectedContext | undefined, CommandFailed> {
  const list = yield* readContexts
  const { current } = list
  const selected = namedContext(flags) ??
    (current === undefined ? undefined : { name: current, selection: "current context" as const })
  if (selected === undefined) return undefined
  return { ...yield* contextNamed(list, selected.name), ...selected }
})

/** A token that may come from anywhere; fails with exit code 2 for a text that is none. */
export const checkedToken = (
  token: string,
  from: string
): Effect.Effect<Redacted.Redacted, CommandFailed> =>
  /^[\x21-\x7e]+$/.test(token) ? Effect.succeed(Redacted.make(token)) : Effect.fail(wrongUsage(
    `${from} has no token`,
    "set it again; a token is visible ASCII characters without spaces"
  ))

/** The token of RESTANTE_TOKEN, if it is set; fails with exit code 2 for a text that is none. */
export const tokenOfEnvironment: Effect.Effect<Redacted.Redacted | undefined, CommandFailed> =
  Effect.suspend(() => {
    const token = variable("RESTANTE_TOKEN")
    return token === undefined ? Effect.succeed(undefined) : checkedToken(token, "RESTANTE_TOKEN")
  })

/** A token with where it comes from, and which accounts may be named with it. */
interface FoundToken extends Sourced<Redacted.Redacted> {
  readonly source: "flag" | "RESTANTE_TOKEN" | "ADMIN_TOKEN" | "context"
}

const tokenOfContext = Effect.fnUntraced(function*(
  { name, token, tokenFile }: SelectedContext
): Effect.fn.Return<FoundToken | undefined, CommandFailed> {
  const from = `context ${name}`
  if (token !== undefined) {
    return { value: yield* checkedToken(token, from), from, source: "context" }
  }
  if (tokenFile === undefined) return undefined
  const value = yield* Effect.mapError(
    readSecret(tokenFile, ""),
    ({ exitCode, problem }) =>
      failed(
        problem,
        `restore the file of the ${from}, or replace the context (restante context add ${name} ` +
          "--replace)",
        exitCode
      )
  )
  return { value, from: `${from}, ${tokenFile}`, source: "context" }
})

/** The tokens of variables in their order, and that of cluster.config.ts, which is a default. */
const tokensOfSettings = Effect.fnUntraced(function*(
  { resolved, settings: { adminToken } }: LoadedSettings,
  role: TokenRole
) {
  const own = yield* tokenOfEnvironment
  const ofAccount: ReadonlyArray<FoundToken> = own === undefined
    ? []
    : [{ value: own, from: "environment RESTANTE_TOKEN", source: "RESTANTE_TOKEN" }]
  const from = resolved.find(({ setting }) => setting.name === "adminToken")?.source ?? "unset"
  const ofAdmin: ReadonlyArray<FoundToken> = adminToken === undefined
    ? []
    : [{ value: adminToken, from, source: "ADMIN_TOKEN" }]
  // RESTANTE_TOKEN may be that of an account without the role of an admin.
  const ordered = role === "admin" ? [...ofAdmin, ...ofAccount] : [...ofAccount, ...ofAdmin]
  const isVariable = ({ from }: FoundToken): boolean => from.startsWith("environment ")
  return {
    variables: ordered.filter(isVariable),
    defaults: ordered.filter((one) => !isVariable(one))
  }
})

const accountOfEnvironment = Effect.suspend(() => {
  const account = variable("RESTANTE_ACCOUNT")
  if (account === undefined) return Effect.succeed(account)
  return Effect.mapError(Schema.decodeEffect(AccountText)(account), () =>
    wrongUsage(
      `RESTANTE_ACCOUNT is ${JSON.stringify(account)}, which names no account`,
      "set it to a name, 1 to 64 of a-z, 0-9 and -, or to the URI of an account"
    ))
})

/**
 * The account of a token. ADMIN_TOKEN is that of the account admin alone, and the account of a
 * context belongs to the context's token, or to one that its user types.
 */
const accountOf = Effect.fnUntraced(function*(
  flags: ServiceFlags,
  context: SelectedContext | undefined,
  token: FoundToken | undefined
): Effect.fn.Return<Sourced<string> | undefined, CommandFailed> {
  const ofFlag = Option.getOrUndefined(flags.account ?? Option.none())
  if (ofFlag !== undefined) return { value: ofFlag, from: "flag --account" }
  if (token?.source === "ADMIN_TOKEN") return undefined
  const ofVariable = sourced(yield* accountOfEnvironment, "environment RESTANTE_ACCOUNT")
  if (context === undefined || (token !== undefined && token.source !== "context")) {
    return ofVariable
  }
  const ofContext = sourced(context.account, `context ${context.name}`)
  return isOfFlag(context) ? ofContext ?? ofVariable : ofVariable ?? ofContext
})

/** A service with its credentials, and where each comes from. */
export interface ResolvedService {
  readonly context: SelectedContext | undefined
  readonly baseUrl: Sourced<string>
  /** As it is written: a name, or a path or a URI that may be of another service. */
  readonly account: Sourced<string> | undefined
  readonly token: FoundToken | undefined
}

/** The address of the settings, before a context is looked at. */
const addressOf = ({ resolved, settings }: LoadedSettings): Sourced<string> => {
  const source = resolved.find(({ setting }) => setting.name === "baseUrl")?.source ?? "unset"
  return {
    value: baseUrlOf(settings, settings.port),
    from: source === "unset" ? "default" : source
  }
}

/**
 * The service of the flags, the environment, the context and the defaults. A context that a flag
 * selects comes before the environment, since a flag is closer to the command.
 */
export const resolveService = Effect.fnUntraced(function*(
  flags: ServiceFlags,
  role: TokenRole
): Effect.fn.Return<ResolvedService, CommandFailed> {
  const { "base-url": flag, "token-file": tokenFile } = flags
  const loaded = yield* loadSettingsOf(flag === undefined ? {} : { "base-url": flag })
  const written = addressOf(loaded)
  const isUrlOfFlag = written.from.startsWith("flag ")
  const isUrlGiven = isUrlOfFlag || written.from.startsWith("environment ")
  const ofFlag: FoundToken | undefined = Option.isNone(tokenFile) ? undefined : {
    value: yield* readSecret(tokenFile.value, questionOf(role)),
    from: `flag --token-file, ${tokenFile.value}`,
    source: "flag"
  }
  const { defaults, variables } = yield* tokensOfSettings(loaded, role)
  const isComplete = isUrlGiven && (ofFlag !== undefined || variables.length > 0)
  const context = isComplete && namedContext(flags) === undefined
    ? undefined
    : yield* selectContext(flags)
  const ofContext = context && { value: context.url, from: `context ${context.name}` }
  const isContextFirst = isOfFlag(context) ? !isUrlOfFlag : !isUrlGiven
  const baseUrl = isContextFirst ? ofContext ?? written : written
  // Another service must not receive the token of a context.
  const own = context?.url === baseUrl.value ? context : undefined
  const token = ofFlag ??
    (isOfFlag(own) && own ? yield* tokenOfContext(own) : undefined) ??
    variables[0] ??
    (own && (yield* tokenOfContext(own))) ??
    defaults[0]
  return { context, baseUrl, token, account: yield* accountOf(flags, own, token) }
})
