/** Which service a command talks to, and as whom. */
import { Console, Effect, Option, Redacted } from "effect"
import { CliOutput, Flag } from "effect/cli"
import { CommandFailed, exitCodes } from "../command-failure.ts"
import { baseUrlOf } from "../settings/index.ts"
import { load, settingFlags } from "./flags.ts"
import { byToken, type RemoteService } from "./service/index.ts"

export const jsonFlag = (about = "Print JSON") =>
  Flag.Boolean("json").pipe(Flag.withDescription(about), Flag.withDefault(false))

/** A document for programs. */
export const printJson = (document: unknown): Effect.Effect<void> =>
  Console.log(JSON.stringify(document, null, 2))

/** Control characters, line separators, and what turns the direction of writing. */
const unprintable = /[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]+/gu

/** Text of others as one line that can do nothing to a terminal. */
export const plain = (text: string): string => text.replace(unprintable, " ")

/** Rows below each other, with columns as wide as they need to be. */
export const table = (rows: ReadonlyArray<ReadonlyArray<string>>): string => {
  const widths: Array<number> = []
  for (const row of rows) {
    for (const [at, cell] of row.entries()) widths[at] = Math.max(widths[at] ?? 0, cell.length)
  }
  return rows.map((row) => row.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join("  ").trimEnd())
    .join("\n")
}

/** `1 recipient`, `2 recipients`. */
export const some = (count: number, what: string): string =>
  `${count} ${what}${count === 1 ? "" : "s"}`

/** Ends this process quietly when nobody reads on, as `head` does after its last line. */
export const endWithReader = (): void => {
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") throw error
    process.exit(0)
  })
}

/* Where the command line writes what it says of itself. */

/** The console of a command that prints nothing: who reads its output would take help for it. */
const toPeople: Console.Console = Object.assign(Object.create(console), {
  log: (...told: ReadonlyArray<unknown>) => process.stderr.write(`${told.join(" ")}\n`)
})

/** Help goes to standard output when it was asked for, and else beside it. */
export const presenter: CliOutput.Presenter = {
  present: (event) => {
    const shown = CliOutput.defaultPresenter.present(event)
    const isAsked = event._tag === "Version" ||
      (event._tag === "Help" && event.reason !== "Implicit")
    return isAsked ? shown : Effect.provideService(shown, Console.Console, toPeople)
  }
}

/* What the commands print. */

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
