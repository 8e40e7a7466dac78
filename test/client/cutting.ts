/** A TCP proxy that resets connections after a number of bytes. */
import { type AddressInfo, connect, createServer, type Socket } from "node:net"

export interface Cutting {
  readonly url: string
  /** Number of connections so far. */
  readonly connections: () => number
  readonly close: () => void
}

/**
 * For each connection the proxy calls `target` for the port, and `bytes` for the number of response
 * bytes to forward before it resets both sides. Infinity never resets.
 */
export const startCutting = (
  target: () => number,
  bytes: (connection: number) => number
): Promise<Cutting> => {
  let count = 0
  const sockets = new Set<Socket>()
  const server = createServer({ noDelay: true }, (client) => {
    let left = bytes(count++)
    const other = connect({ port: target(), host: "127.0.0.1", noDelay: true })
    const end = (): void => {
      client.resetAndDestroy()
      other.destroy()
    }
    for (const socket of [client, other]) {
      sockets.add(socket)
      socket.on("error", end).on("close", () => {
        sockets.delete(socket)
        end()
      })
    }
    client.on("data", (chunk: Buffer) => other.write(chunk))
    other.on("data", (chunk: Buffer) => {
      const passed = chunk.subarray(0, Math.max(0, left))
      left -= chunk.length
      if (left > 0) return void client.write(passed)
      client.write(passed, () => setImmediate(end))
    })
  })
  return new Promise((resolve) =>
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address() as AddressInfo // a TCP server's address is an object
      resolve({
        url: `http://127.0.0.1:${port}`,
        connections: () => count,
        close: () => {
          for (const socket of sockets) socket.destroy()
          server.close()
        }
      })
    })
  )
}
