/** `restante migrate`. */
import { Effect } from "effect"
import { Command, Flag } from "effect/cli"
import { CommandFailed, exitCodes } from "../failure.ts"
import { report, storeFlags, withProgress } from "./archive.ts"
import { jsonFlag } from "./output.ts"
import { load } from "./flags.ts"

const { "nats-url": _, ...flagsOfStore } = storeFlags

export const migrateCommand = Command.make(
  "migrate",
  {
    ...flagsOfStore,
    to: Flag.String("to").pipe(
      Flag.withMetavar("servers"),
      Flag.withDescription("The cluster to be filled (NATS_URL)"),
      Flag.optional
    ),
    json: jsonFlag()
  },
  Effect.fnUntraced(function*({ json, to, ...flags }) {
    const { settings } = yield* load({ ...flags, "nats-url": to })
    const { natsUrl, ...rest } = settings
    if (natsUrl === undefined) {
      return yield* new CommandFailed({
        message: "where to is needed: give --to, or set NATS_URL",
        exitCode: exitCodes.usage
      })
    }
    const { explained, migrate, placeOf } = yield* Effect.promise(() =>
      import("../archive/index.ts")
    )
    const from = { ...rest, natsUrl: undefined }
    const place = placeOf(settings)
    const filled = yield* withProgress((seen) => Effect.scoped(migrate(from, settings, seen)))
      .pipe(
        Effect.mapError((failure) => explained(`${placeOf(from)} or ${place}`, undefined, failure))
      )
    yield* report(place, filled, json)
  })
).pipe(
  Command.withDescription(
    "Copy the stopped store of DATA_DIR into a new cluster, and compare what came there"
  ),
  Command.withExamples([
    { command: "restante migrate --to nats://a,nats://b,nats://c", description: "From ./data" }
  ])
)
