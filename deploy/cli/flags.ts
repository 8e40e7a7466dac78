/** Flags of the command line: one for each setting that may be given there. */
import { Effect, Option, Result } from "effect"
import { Flag } from "effect/cli"
import { CommandFailed, exitCodes } from "../command-failure.ts"
import { allSettings, type LoadedSettings, loadSettings,
  replacementOfFlag } from "../settings/index.ts"

type SettingFlags = Record<string, Flag.Flag<Option.Option<string>>>

/** By name without dashes. */
export const settingFlags: SettingFlags = Object.fromEntries(
  allSettings.flatMap((one) =>
    one.flag === undefined ? [] : [[
      one.flag,
      Flag.String(one.flag).pipe(
        Flag.withMetavar(one.kind.metavar),
        Flag.withDescription(`${one.description} (${one.variable})`),
        Flag.optional
      )
    ]]
  )
)

/** The settings of this process, with the given flags over its environment. */
export const load = (
  flags: Readonly<Record<string, Option.Option<string>>>
): Effect.Effect<LoadedSettings, CommandFailed> => {
  const given = Object.fromEntries(
    Object.entries(flags).map(([name, value]) => [name, Option.getOrUndefined(value)])
  )
  const loaded = loadSettings(process.env, given)
  return Result.isSuccess(loaded)
    ? Effect.succeed(loaded.success)
    : Effect.fail(
      new CommandFailed({ message: loaded.failure.message, exitCode: exitCodes.configuration })
    )
}

/** Fails with the name of the new flag where the command line has one of an earlier version. */
export const rejectRetiredFlags = (
  args: ReadonlyArray<string>
): Effect.Effect<void, CommandFailed> => {
  for (const arg of args) {
    const [, name = ""] = /^--([a-z-]+)/.exec(arg) ?? []
    const replacement = replacementOfFlag(name)
    if (replacement !== undefined) {
      const message =
        `the command line has --${name}, which is no longer a flag: use --${replacement}`
      return Effect.fail(new CommandFailed({ message, exitCode: exitCodes.configuration }))
    }
  }
  return Effect.void
}
