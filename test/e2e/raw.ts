/** Bytes on a socket: what no HTTP client would send. */
import { connect, type Socket } from "node:net"
import { notification } from "./client.ts"

/** An open connection with what came back on it. */
export interface Wire {
  readonly socket: Socket
  readonly received: () => string
  /** Resolves when the connection is closed by the other side, or broken. */
  readonly closed: Promise<void>
}

export const open = (port: number): Promise<Wire> =>
  new Promise((resolve, reject) => {
    const socket = connect({ host: "127.0.0.1", port })
    let text = ""
    socket.on("data", (chunk) => {
      text += chunk.toString("latin1")
    })
    const closed = new Promise<void>((done) => socket.on("close", () => done()))
    socket.once("error", reject)
    socket.once("connect", () => {
      // From now on a reset is an answer, too.
      socket.on("error", () => undefined)
      resolve({ socket, received: () => text, closed })
    })
  })

/**
 * Sends the pieces, each as it is, and returns what came back until the connection was closed or
 * `quietMs` had passed after the last piece.
 */
export const speak = async (
  port: number,
  pieces: ReadonlyArray<string | Uint8Array>,
  quietMs = 300
): Promise<string> => {
  const { closed, received, socket } = await open(port)
  for (const piece of pieces) {
    socket.write(piece)
    // Pieces shall arrive as such.
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
  let timer: NodeJS.Timeout | undefined
  await Promise.race([
    closed,
    new Promise((resolve) => {
      timer = setTimeout(resolve, quietMs)
    })
  ])
  clearTimeout(timer)
  socket.destroy()
  return received()
}

/** The statuses of the responses in what came back, in order. */
export const statusesOf = (received: string): ReadonlyArray<number> =>
  [...received.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status))

/** A header block with the lines given. */
export const head = (...lines: ReadonlyArray<string>): string => `${lines.join("\r\n")}\r\n\r\n`

/** A deposit in the mailbox at a path, to be hidden behind another request: it must not happen. */
export const smuggledInto = (path: string): string => {
  const body = notification("smuggled")
  return head(
    `POST ${path} HTTP/1.1`,
    "Host: a",
    "Content-Type: application/xml",
    `Content-Length: ${body.length}`
  ) + body
}
