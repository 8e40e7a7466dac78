/** Receivers that fail: unreachable listeners, and peers with bad responses. */
import { spawn } from "node:child_process"
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net"

/** Listens on a free port; `talk` handles each connection. */
const listening = (talk: (socket: Socket) => void, host: string) =>
  new Promise<{ readonly port: number; readonly close: () => void }>((resolve, reject) => {
    const sockets = new Set<Socket>()
    const server: Server = createServer((socket) => {
      sockets.add(socket)
      socket.on("error", () => undefined)
      socket.once("close", () => sockets.delete(socket))
      talk(socket)
    })
    server.once("error", reject)
    server.listen(0, host, () => {
      const { port } = server.address() as AddressInfo // a TCP server's address is an object
      resolve({
        port,
        close: () => {
          for (const socket of sockets) socket.destroy()
          server.close()
        }
      })
    })
  })

/** A listener that the service must not reach; `hits` counts connections. */
export interface GuardedListener {
  readonly port: number
  readonly hits: () => number
  readonly close: () => void
}

/** Listens on every address of this machine. */
export const guardedListener = async (): Promise<GuardedListener> => {
  let hits = 0
  const talk = (socket: Socket): void => {
    hits += 1
    socket.end("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
  }
  const found = await listening(talk, "::").catch(() => listening(talk, "0.0.0.0"))
  return { ...found, hits: () => hits }
}

/** A port without a listener. */
export const closedPort = async (): Promise<number> => {
  const { close, port } = await listening(() => undefined, "127.0.0.1")
  close()
  return port
}

const opened: Array<() => void> = []

/** Ends everything that {@link rawServer} and {@link fullBacklog} started: for `afterAll`. */
export const closeFaults = (): void => {
  for (const close of opened.splice(0)) close()
}

/** A TCP server that runs `talk` on each connection; returns its origin. */
export const rawServer = async (talk: (socket: Socket) => void): Promise<string> => {
  const { close, port } = await listening(talk, "127.0.0.1")
  opened.push(close)
  return `http://127.0.0.1:${port}`
}

/** Writes `piece` repeatedly until the connection is closed. */
export const sendSlowly = (socket: Socket, piece: string, everyMs: number): void => {
  const drip = setInterval(() => socket.write(piece), everyMs)
  socket.once("close", () => clearInterval(drip))
}

const blocked = `
const server = require("node:net").createServer()
server.listen(0, "127.0.0.1", 1, () => {
  require("node:fs").writeSync(1, String(server.address().port) + "\\n")
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
})`

/** A listener that accepts nothing and whose backlog is full: connecting to it hangs. */
export const fullBacklog = async (): Promise<string> => {
  const child = spawn(process.execPath, ["-e", blocked], { stdio: ["ignore", "pipe", "inherit"] })
  const port = await new Promise<number>((resolve, reject) => {
    child.once("error", reject)
    child.stdout.once("data", (text) => resolve(Number(String(text))))
  })
  const fillers = Array.from({ length: 8 }, () => connect(port, "127.0.0.1"))
  for (const socket of fillers) socket.on("error", () => undefined)
  opened.push(() => {
    for (const socket of fillers) socket.destroy()
    child.kill("SIGKILL")
  })
  // The kernel accepts the first connections.
  await new Promise((resolve) => setTimeout(resolve, 200))
  return `http://127.0.0.1:${port}`
}
