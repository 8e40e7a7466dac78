/** `restante backup`. */
import { Console, Effect } from "effect"
import { Command, Flag } from "effect/cli"
import { fileArgument, storeFlags, withProgress } from "./archive.ts"
import { jsonFlag } from "./output.ts"
import { load } from "./flags.ts"
import { table } from "./output.ts"

export const backupCommand = Command.make(
  "backup",
  {
    ...storeFlags,
    file: fileArgument("Where the archive goes; it must not be there. -: standard output"),
    plain: Flag.Boolean("plain").pipe(
      Flag.withDescription("Do not compress"),
      Flag.withDefault(false)
    ),
    json: jsonFlag()
  },
  Effect.fnUntraced(function*({ file, json, plain, ...flags }) {
    const { settings } = yield* load(flags)
    // Only the commands on stores need the native modules.
    const { backUp, placeOf, rowsOf, explained } = yield* Effect.promise(() =>
      import("../archive/index.ts")
    )
    const place = placeOf(settings)
    const { counts, fileBytes, lost, unsteady } = yield* withProgress((seen) =>
      Effect.scoped(backUp(settings, file, plain, seen))
    ).pipe(Effect.mapError((failure) => explained(place, file, failure)))
    // Standard output may be the archive itself.
    const print = file === "-" ? Console.error : Console.log
    if (json) {
      const told = { place, file, fileBytes, counts, unsteady, lost }
      yield* print(JSON.stringify(told, null, 2))
    } else {
      yield* print(table(rowsOf(counts)))
      if (unsteady > 0) {
        yield* print(`${unsteady} actor(s) were changed all the while they were read`)
      }
      yield* print(`${place}: ${fileBytes} bytes in ${file}`)
    }
  })
).pipe(
  Command.withDescription(
    "Write everything that is kept into one file; the embedded store must be stopped"
  ),
  Command.withExamples([
    { command: "restante backup monday.restante", description: "Of the store in ./data" },
    { command: "NATS_URL=nats://a restante backup -", description: "Of a cluster that runs" }
  ])
)
