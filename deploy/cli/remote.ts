/** Which service a command talks to, and as whom. */
import { Effect, Option, Redacted } from "effect"
import { Flag } from "effect/cli"
import { CommandFailed, exitCodes } from "../failure.ts"
import { byToken, type RemoteService } from "../remote.ts"
import { baseUrlOf } from "../settings.ts"
import { load, settingFlags } from "./flags.ts"

const { "base-url": baseUrl } = settingFlags

const flagsWith = (about: string) => ({
  ...(baseUrl === undefined ? {} : {
    "base-url": baseUrl.pipe(Flag.withDescription("Where the service is (BASE_URL)"))
  }),
  token: Flag.Redacted("token").pipe(Flag.withDescription(about), Flag.optional)
})

/** Of commands that only an admin may use. */
export const adminFlags = flagsWith("Token of an admin; better given as ADMIN_TOKEN")

/** Of commands that are for any account. */
export const accountFlags = flagsWith(
  "Token of the account; better given as RESTANTE_TOKEN, or ADMIN_TOKEN"
)

/** The values of these flags. */
export interface RemoteFlags {
  readonly token: Option.Option<Redacted.Redacted>
  readonly "base-url"?: Option.Option<string>
}

const usage = (message: string): CommandFailed =>
  new CommandFailed({ message, exitCode: exitCodes.usage })

/** What can stand in a header field. */
const isSendable = (secret: Redacted.Redacted): boolean =>
  /^[\x21-\x7e]+$/.test(Redacted.value(secret))

const accountToken = (): Redacted.Redacted | undefined => {
  const value = process.env["RESTANTE_TOKEN"]?.trim()
  return value === undefined || value === "" ? undefined : Redacted.make(value)
}

/** The service, and the token that was found for it. */
export interface ServiceLocation {
  readonly baseUrl: string
  /** Whether somebody said where the service is. */
  readonly isGiven: boolean
  readonly token: Redacted.Redacted | undefined
}

/** Where the service is; `admin` looks for no other token than an admin's. */
export const serviceLocation = Effect.fnUntraced(function*(
  { token, ...flags }: RemoteFlags,
  role: "admin" | "account"
): Effect.fn.Return<ServiceLocation, CommandFailed> {
  const given = flags["base-url"] === undefined ? {} : { "base-url": flags["base-url"] }
  const { settings } = yield* load(given)
  const environment = role === "account" ? accountToken() : undefined
  const found = Option.getOrUndefined(token) ?? environment ?? settings.adminToken
  if (found !== undefined && !isSendable(found)) {
    return yield* usage("a token is visible ASCII characters without spaces")
  }
  return {
    baseUrl: baseUrlOf(settings, settings.port),
    isGiven: settings.baseUrl !== undefined,
    token: found
  }
})

/** The service as an admin. */
export const asAdmin = Effect.fnUntraced(function*(
  flags: RemoteFlags
): Effect.fn.Return<RemoteService, CommandFailed> {
  const { baseUrl, token } = yield* serviceLocation(flags, "admin")
  if (token !== undefined) return { baseUrl, authorization: byToken(token) }
  return yield* usage("an admin's token is needed: set ADMIN_TOKEN, or give --token")
})

/** The service as the account of a token. */
export const asAccount = Effect.fnUntraced(function*(
  flags: RemoteFlags
): Effect.fn.Return<RemoteService, CommandFailed> {
  const { baseUrl, token } = yield* serviceLocation(flags, "account")
  if (token !== undefined) return { baseUrl, authorization: byToken(token) }
  return yield* usage("an account's token is needed: set RESTANTE_TOKEN, or give --token")
})
