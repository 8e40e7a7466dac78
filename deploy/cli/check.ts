/** `restante check`. */
import { Console, Effect } from "effect"
import { Command } from "effect/cli"
import { CommandFailed, exitCodes } from "../failure.ts"
import { storeFlags } from "./archive.ts"
import { jsonFlag } from "./output.ts"
import { load } from "./flags.ts"

export const checkCommand = Command.make(
  "check",
  { ...storeFlags, json: jsonFlag() },
  Effect.fnUntraced(function*({ json, ...flags }) {
    const { settings } = yield* load(flags)
    // Only the commands on stores need the native modules.
    const { check, placeOf } = yield* Effect.promise(() => import("../check.ts"))
    const place = placeOf(settings)
    const { counts, problems, store } = yield* check(settings)
    if (json) yield* Console.log(JSON.stringify({ place, store, counts, problems }, null, 2))
    else {
      if (store !== undefined) yield* Console.log(`store: ${store}`)
      for (const [name, count] of Object.entries(counts)) yield* Console.log(`${name}: ${count}`)
      for (const problem of problems) yield* Console.error(`problem: ${problem}`)
    }
    if (problems.length > 0) {
      const message = `${place}: ${problems.length} problem(s) found`
      return yield* new CommandFailed({ message, exitCode: exitCodes.failed })
    }
    if (!json) yield* Console.log(`${place}: ok`)
  })
).pipe(
  Command.withDescription(
    "Verify the store of a stopped service, or a cluster; exits 1 when it finds problems"
  )
)
