/** `restante serve`. */
import { Effect } from "effect"
import { Command } from "effect/cli"
import { loggingLayer } from "../logging.ts"
import { version } from "../version.ts"
import { load, settingFlags } from "./flags.ts"

export const serveCommand = Command.make(
  "serve",
  settingFlags,
  Effect.fnUntraced(function*(flags) {
    const loaded = yield* load(flags)
    // Only this command needs the native modules.
    const { serve } = yield* Effect.promise(() => import("../serve.ts"))
    yield* serve(loaded, version).pipe(Effect.provide(loggingLayer(loaded.settings)))
  })
).pipe(
  Command.withDescription("Run the service until SIGTERM or SIGINT, then drain and stop"),
  Command.withExamples([
    { command: "restante serve", description: "Serve on port 8080, with the store in ./data" },
    { command: "restante serve --port 9000 --data-dir /var/lib/restante", description: "Elsewhere" }
  ])
)
