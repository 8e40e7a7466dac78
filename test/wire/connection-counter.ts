/** Passes connections on to a port, and counts them. */
import { connect, createServer, type Socket } from "node:net"
import { freePorts } from "../runtime/nats/servers.ts"

export interface ConnectionCounter {
  readonly port: number
  /** How many connections there were. */
  readonly connections: () => number
  readonly close: () => Promise<void>
}

/** Ends or resets one side when the other side does. */
const joined = (one: Socket, other: Socket): void => {
  one.pipe(other)
  one.on("error", () => other.resetAndDestroy())
  one.on("close", (isBroken) => isBroken || other.destroySoon())
}

export const countConnectionsTo = async (target: number): Promise<ConnectionCounter> => {
  const [port = 0] = await freePorts(1)
  const open = new Set<Socket>()
  let connections = 0
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (near) => {
    connections += 1
    const far = connect({ port: target, host: "127.0.0.1", allowHalfOpen: true, noDelay: true })
    for (const socket of [near, far]) open.add(socket.on("close", () => open.delete(socket)))
    joined(near, far)
    joined(far, near)
  })
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve))
  return {
    port,
    connections: () => connections,
    close: () => {
      for (const socket of open) socket.destroy()
      return new Promise((resolve) => server.close(() => resolve()))
    }
  }
}
