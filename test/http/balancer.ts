/** A load balancer of the tests' own: each connection goes to a node chosen at random. */
import { connect, createServer, type Socket } from "node:net"

export interface Balancer {
  readonly close: () => Promise<void>
}

/** One of them, each as likely as the others. */
export const anyOf = <A>(all: ReadonlyArray<A>): A => {
  const one = all[Math.floor(Math.random() * all.length)]
  if (one === undefined) throw new Error("there is none")
  return one
}

/** Bytes as they come, and the end of either side to the other. */
const join = (one: Socket, other: Socket): void => {
  one.pipe(other)
  // A connection that breaks off on one side does so on the other.
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
    join(client, node)
    join(node, client)
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
