/** `restante restore`. */
import { Effect } from "effect"
import { Command } from "effect/cli"
import { fileArgument, report, storeFlags, withProgress } from "./archive.ts"
import { jsonFlag } from "./output.ts"
import { load } from "./flags.ts"

export const restoreCommand = Command.make(
  "restore",
  { ...storeFlags, file: fileArgument("The archive"), json: jsonFlag() },
  Effect.fnUntraced(function*({ file, json, ...flags }) {
    const { settings } = yield* load(flags)
    const { explained, placeOf, restore } = yield* Effect.promise(() =>
      import("../archive/index.ts")
    )
    const place = placeOf(settings)
    const filled = yield* withProgress((seen) => Effect.scoped(restore(settings, file, seen)))
      .pipe(Effect.mapError((failure) => explained(place, file, failure)))
    yield* report(place, filled, json)
  })
).pipe(
  Command.withDescription(
    "Fill a new store from an archive, and compare; nothing else may use it meanwhile"
  ),
  Command.withExamples([
    { command: "restante restore monday.restante --data-dir new", description: "In a new folder" }
  ])
)
