/** Backends of the suites on one set of servers, each with new streams. */
import { jetstreamManager } from "@nats-io/jetstream"
import { connect } from "@nats-io/transport-node"
import { type Context, Layer } from "effect"
import { connection, type Nats } from "../../../runtime/nats/connection/connection.ts"
import { type Fresh, fromLayer } from "../../suites/harness.ts"

const ASK_MS = 1_000

/** How long the deletion of all streams may take, also during an election. */
const GONE_MS = 30_000

/** A server clears the files of a deleted stream away afterwards, and of the next one with it. */
const CLEARED_MS = 250

/**
 * Removes every stream of these servers. Purged first: a server that has not yet cleared away the
 * stream of this name that was deleted before deletes no files, and the next stream has them again.
 */
export const removeStreams = async (urls: ReadonlyArray<string>): Promise<void> => {
  const nc = await connect({ servers: [...urls] })
  const jsm = await jetstreamManager(nc, { checkAPI: false, timeout: ASK_MS })
  const untilMs = performance.now() + GONE_MS
  const remove = async (): Promise<void> => {
    try {
      for await (const { config } of jsm.streams.list()) {
        await jsm.streams.purge(config.name)
        await jsm.streams.delete(config.name)
      }
    } catch (error) {
      // Servers without a leader do not answer, and the next leader answers no earlier request.
      if (performance.now() > untilMs) throw error
      await remove()
    }
  }
  await remove()
  await nc.close()
  await new Promise((resolve) => setTimeout(resolve, CLEARED_MS))
}

/** A backend that is a layer on the connection. */
export const onNats = <Id, Api, E>(
  service: Context.Key<Id, Api>,
  layer: Layer.Layer<Id, E, Nats>,
  urls: () => ReadonlyArray<string>
): Fresh<Api> =>
() => {
  const servers = urls()
  return fromLayer(
    service,
    Layer.provide(layer, connection({ servers, name: "test" })),
    () => removeStreams(servers)
  )
}
