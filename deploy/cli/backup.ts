/** `restante backup`. */
import { Console, Effect, Option } from "effect"
import { Command, Flag } from "effect/cli"
import type { BackedUp, Seen } from "../archive/index.ts"
import { adminFlags, asAdmin } from "./remote.ts"
import { bytesProgress, fileArgument, storeFlags, withProgress } from "./archive.ts"
import { load } from "./flags.ts"
import { jsonFlag, table } from "./output.ts"

export const backupCommand = Command.make(
  "backup",
  {
    ...storeFlags,
    file: fileArgument("Where the archive goes; it must not be there. -: standard output"),
    url: Flag.String("url").pipe(
      Flag.withDescription("Of the service that runs at this address, instead of a store"),
      Flag.optional
    ),
    token: adminFlags.token,
    plain: Flag.Boolean("plain").pipe(
      Flag.withDescription("Do not compress"),
      Flag.withDefault(false)
    ),
    json: jsonFlag()
  },
  Effect.fnUntraced(function*({ file, json, plain, token, url, ...flags }) {
    // Only the commands on stores need the native modules.
    const { backUp, backUpRunning, placeOf, rowsOf, explained } = yield* Effect.promise(() =>
      import("../archive/index.ts")
    )
    const address = Option.getOrUndefined(url)
    const { settings } = yield* load(address === undefined ? flags : {})
    const place = address ?? placeOf(settings)
    const ofStore = (seen: Seen) => Effect.scoped(backUp(settings, file, plain, seen))
    const saved: Effect.Effect<BackedUp, Error> = address === undefined
      ? withProgress(ofStore)
      : Effect.flatMap(
        asAdmin({ token, "base-url": url }),
        (remote) => bytesProgress((seen) => backUpRunning(remote, file, plain, seen))
      )
    const { counts, fileBytes, lost, unsteady } = yield* Effect.mapError(
      saved,
      (failure) => explained(place, file, failure)
    )
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
    "Write everything that is kept into one file: of a stopped store, a cluster, or --url"
  ),
  Command.withExamples([
    { command: "restante backup monday.restante", description: "Of the store in ./data" },
    { command: "NATS_URL=nats://a restante backup -", description: "Of a cluster that runs" },
    {
      command: "restante backup monday.restante --url http://localhost:8080",
      description: "Of a service that runs, as an admin"
    }
  ])
)
