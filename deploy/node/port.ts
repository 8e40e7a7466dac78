/** The port on which a node listens. */
import { Effect, type Scope } from "effect"
import { createServer, type Server } from "node:net"
import { ServerUnavailable } from "../../http/index.ts"

/** A port that no other process gets until its node listens on it. */
export interface HeldPort {
  readonly port: number
  /** Frees the port, immediately before the node listens. */
  readonly release: Effect.Effect<void>
}

const close = (server: Server): Effect.Effect<void> =>
  Effect.callback((resume) => void server.close(() => resume(Effect.void)))

const listenOnFreePort = (host: string): Effect.Effect<Server, ServerUnavailable> =>
  Effect.callback((resume) => {
    const server = createServer((socket) => socket.destroy())
    server.once("error", (cause) => {
      resume(Effect.fail(new ServerUnavailable("Address", cause.message, cause)))
    })
    server.listen(0, host, () => resume(Effect.succeed(server)))
  })

/**
 * Holds the port to listen on. For 0 it is a free one, chosen at the start, since the base URL must
 * name it; a start can take seconds, in which another process could get it. Fails with
 * ServerUnavailable for a host that is not local.
 */
export const holdPort = (
  host: string,
  port: number
): Effect.Effect<HeldPort, ServerUnavailable, Scope.Scope> => {
  if (port !== 0) return Effect.succeed({ port, release: Effect.void })
  return Effect.map(Effect.acquireRelease(listenOnFreePort(host), close), (server) => {
    const address = server.address()
    if (typeof address !== "object" || address === null) {
      throw new Error("a server that listens has an address")
    }
    return { port: address.port, release: close(server) }
  })
}
