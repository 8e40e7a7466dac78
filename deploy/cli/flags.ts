/** Flags that several commands have, and the settings of this process. */
import { Effect, Option, Record, Result, Schema } from "effect"
import { Argument, Flag } from "effect/cli"
import { type CommandFailed, exitCodes, failed, failedAs } from "../command-failure.ts"
import { allSettings, type LoadedSettings, loadSettings,
  replacementOfFlag } from "../settings/index.ts"
import { AccountText } from "./resource-name/index.ts"

/** A flag for each setting that may be a flag, by name without dashes. */
export const settingFlags: Record<string, Flag.Flag<Option.Option<string>>> = Object.fromEntries(
  allSettings.flatMap(({ description, flag, kind, variable }) =>
    flag === undefined ? [] : [[
      flag,
      Flag.String(flag).pipe(
        Flag.withMetavar(kind.metavar),
        Flag.withDescription(`${description} (${variable})`),
        Flag.optional
      )
    ]]
  )
)

const isOfStore = (name: string): boolean =>
  name === "data-dir" || name === "storage-engine" || name === "cluster-buckets" ||
  name === "secret-key-file" ||
  name.startsWith("nats-")

/** The flags that locate a store; without NATS_URL it is the one in DATA_DIR. */
export const storeFlags: typeof settingFlags = Object.fromEntries(
  Object.entries(settingFlags).filter(([name]) => isOfStore(name))
)

const { "base-url": baseUrl } = settingFlags

/** A flag with a text that may be missing. */
export const textFlag = (name: string, metavar: string, description: string) =>
  Flag.String(name).pipe(
    Flag.withMetavar(metavar),
    Flag.withDescription(description),
    Flag.optional
  )

/** A flag with the file of a secret: every user of a machine sees the values of flags. */
export const secretFileFlag = (name: string, description: string) =>
  textFlag(name, "file", `${description}; - for standard input, or to type it on a terminal`)

/** The name of a context. */
export const Slug = Schema.String.pipe(Schema.check(
  Schema.isPattern(/^[a-z0-9][a-z0-9-]{0,63}$/, {
    message: "Expected 1 to 64 of a-z, 0-9 and -, not beginning with -"
  })
))

const serviceFlags = (about: string) => ({
  ...baseUrl === undefined ? {} : {
    "base-url": baseUrl.pipe(Flag.withDescription("Where the service is (BASE_URL)"))
  },
  "token-file": secretFileFlag("token-file", about),
  context: textFlag(
    "context",
    "name",
    "The context with the service and the token (RESTANTE_CONTEXT); see `restante context`"
  )
})

/** Flags of commands for admins only. */
export const adminFlags = serviceFlags(
  "File of an admin's token, in place of ADMIN_TOKEN and RESTANTE_TOKEN"
)

/** The flag with the name of the account that a token is for. */
export const accountFlag = Flag.String("account").pipe(
  Flag.withSchema(AccountText),
  Flag.withMetavar("name|uri"),
  Flag.withDescription("The account of the token (RESTANTE_ACCOUNT)"),
  Flag.optional
)

/** Flags of commands for any account. */
export const accountFlags = {
  ...serviceFlags("File of the account's token, in place of RESTANTE_TOKEN and ADMIN_TOKEN"),
  account: accountFlag
}

/** The values of these flags. */
export interface ServiceFlags {
  readonly "token-file": Option.Option<string>
  readonly context: Option.Option<string>
  readonly account?: Option.Option<string>
  readonly "base-url"?: Option.Option<string>
}

/** A flag without a value. */
export const switchFlag = (name: string, description: string) =>
  Flag.Boolean(name).pipe(Flag.withDescription(description), Flag.withDefault(false))

export const jsonFlag = (description = "Print JSON") => switchFlag("json", description)

/** An argument with a text. */
export const textArgument = (name: string, description: string) =>
  Argument.String(name).pipe(Argument.withDescription(description))

/** A flag with one of these words, which may be missing. */
export const wordFlag = <const Word extends string>(
  name: string,
  words: ReadonlyArray<Word>,
  description: string
) => Flag.Literals(name, words).pipe(Flag.withDescription(description), Flag.optional)

/** A flag with a whole number of 1 or more. */
export const countFlag = (name: string, metavar: string, maximum: number, description: string) =>
  Flag.Int(name).pipe(
    Flag.withSchema(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum }))),
    Flag.withMetavar(metavar),
    Flag.withDescription(description)
  )

export const sinceFlag = textFlag(
  "since",
  "time",
  "Only what was received since, such as 2026-07-01T00:00:00Z"
)

export const limitFlag = (description: string) =>
  countFlag("limit", "number", 1_000_000_000, description).pipe(Flag.withDefault(100))

/** The settings of this process, with these flags over its environment. */
export const loadSettingsOf = (
  flags: Readonly<Record<string, Option.Option<string>>>
): Effect.Effect<LoadedSettings, CommandFailed> =>
  Effect.suspend(() => {
    const loaded = loadSettings(process.env, Record.map(flags, Option.getOrUndefined))
    return Effect.fromResult(
      Result.mapError(loaded, ({ message }) => failedAs(message, exitCodes.configuration))
    )
  })

/** Two letters or more after one dash: the library would take `-hello` for `-h`, help. */
const letters = /^-[a-z_-][\w-]+$/i

/** What replaces a flag with a secret. */
const secretFlags: Readonly<Record<string, string>> = {
  token: "set RESTANTE_TOKEN or ADMIN_TOKEN, or use --token-file",
  secret: "set RESTANTE_WEBHOOK_SECRET, or use --secret-file",
  password: "use --password-file, or --generate-password to send"
}

const argumentFault = (arg: string): CommandFailed | undefined => {
  const [, name = ""] = /^--([a-z-]+)/.exec(arg) ?? []
  if (Object.hasOwn(secretFlags, name)) {
    return failed(
      `the command line has --${name}, which is no flag, as every user of the machine would see ` +
        "its value",
      secretFlags[name] ?? "",
      exitCodes.usage
    )
  }
  const replacement = replacementOfFlag(name)
  if (replacement !== undefined) {
    return failed(
      `the command line has --${name}, which is no longer a flag`,
      `use --${replacement}`,
      exitCodes.configuration
    )
  }
  if (arg.startsWith("--") || !letters.test(arg)) return undefined
  return failed(
    `the command line has ${arg}, which is no flag`,
    `write an id that begins with "-" after "--", the value of a flag as --flag=${arg}`,
    exitCodes.usage
  )
}

/**
 * Fails where the command line has a flag of an earlier version, naming the new one, or an id that
 * would be read as flags.
 */
export const checkArguments = (args: ReadonlyArray<string>): Effect.Effect<void, CommandFailed> => {
  const end = args.indexOf("--")
  for (const arg of end < 0 ? args : args.slice(0, end)) {
    const fault = argumentFault(arg)
    if (fault !== undefined) return Effect.fail(fault)
  }
  return Effect.void
}
