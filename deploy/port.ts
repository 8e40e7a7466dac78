/** Which port a node listens on. */
import { createServer } from "node:net"
import { Effect } from "effect"
import { ServerUnavailable } from "../http/server.ts"
import type { NodeSettings } from "./settings.ts"

/** The port to listen on: a free one when none is set, since the base URL has to name it. */
export const portOf = (settings: NodeSettings): Effect.Effect<number, ServerUnavailable> =>
  settings.port !== 0
    ? Effect.succeed(settings.port)
    : Effect.callback((resume) => {
      const probe = createServer()
      probe.once(
        "error",
        (cause) => resume(Effect.fail(new ServerUnavailable("Address", cause.message, cause)))
      )
      probe.listen(0, settings.host, () => {
        const found = probe.address()
        probe.close(() =>
          resume(Effect.succeed(typeof found === "object" && found !== null ? found.port : 0))
        )
      })
    })
