/** `restante check`. */
import { Console, Effect } from "effect"
import { Command } from "effect/cli"
import { CommandFailed, exitCodes } from "../failure.ts"
import { load, settingFlags } from "./flags.ts"

const { "data-dir": dataDir } = settingFlags

export const checkCommand = Command.make(
  "check",
  dataDir === undefined ? {} : { "data-dir": dataDir },
  Effect.fnUntraced(function*(flags) {
    const { settings } = yield* load(flags)
    // Only this command and `serve` need the native modules.
    const { check } = yield* Effect.promise(() => import("../check.ts"))
    const { counts, problems } = yield* check(settings.dataDir)
    for (const [name, count] of Object.entries(counts)) yield* Console.log(`${name}: ${count}`)
    for (const problem of problems) yield* Console.error(`problem: ${problem}`)
    if (problems.length > 0) {
      const message = `${settings.dataDir}: ${problems.length} problem(s) found`
      return yield* new CommandFailed({ message, exitCode: exitCodes.failed })
    }
    yield* Console.log(`${settings.dataDir}: ok`)
  })
).pipe(
  Command.withDescription("Verify the store of a stopped service; exits 1 when it finds problems")
)
