/** A load balancer for tests: connects each client to a node chosen at random. */
import { connect, createServer, type Socket } from "node:net"

export interface Balancer {
  readonly close: () => Promise<void>
}

/** A random element. */
export const anyOf = <A>(all: ReadonlyArray<A>): A => {
  const one = all[Math.floor(Math.random() * all.length)]
  if (one === undefined) throw new Error("there is none")
  return one
}

/** Forwards bytes, and the end of the connection, from one socket to the other. */
const forward = (one: Socket, other: Socket): void => {
  one.pipe(other)
  // A reset on one side must be a reset on the other.
  one.once("error", () => other.resetAndDestroy())
  one.once("close", (hadError) => {
    if (!hadError) other.destroySoon()
  })
}

/** Listens on a loopback port in front of others. */
export const balance = async (
  port: number,
  ports: () => ReadonlyArray<number>
): Promise<Balancer> => {
  const sockets = new Set<Socket>()
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
    const node = connect({
      port: anyOf(ports()),
      host: "127.0.0.1",
      allowHalfOpen: true,
      noDelay: true
    })
    for (const socket of [client, node]) {
      sockets.add(socket)
      socket.once("close", () => sockets.delete(socket))
    }
    forward(client, node)
    forward(node, client)
  })
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject)
    server.listen(port, "127.0.0.1", resolve)
  })
  return {
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        for (const socket of sockets) socket.destroy()
      })
  }
}
