/** Bytes on a socket, which no HTTP client would send. */
import { connect, type Socket } from "node:net"
import { notification } from "./client.ts"

/** An open connection with the bytes that it received. */
export interface RawConnection {
  readonly socket: Socket
  readonly received: () => string
  /** Resolves when the peer closes the connection, or it breaks. */
  readonly closed: Promise<void>
}

export const openRaw = (port: number): Promise<RawConnection> =>
  new Promise((resolve, reject) => {
    const socket = connect({ host: "127.0.0.1", port })
    let text = ""
    socket.on("data", (chunk) => {
      text += chunk.toString("latin1")
    })
    const closed = new Promise<void>((done) => socket.on("close", () => done()))
    socket.once("error", reject)
    socket.once("connect", () => {
      // From now on a reset is a valid reaction, too.
      socket.on("error", () => undefined)
      resolve({ socket, received: () => text, closed })
    })
  })

/**
 * Sends the pieces one by one. Returns the received bytes when the connection is closed, or
 * `quietMs` after the last piece.
 */
export const sendRaw = async (
  port: number,
  pieces: ReadonlyArray<string | Uint8Array>,
  quietMs = 300
): Promise<string> => {
  const { closed, received, socket } = await openRaw(port)
  for (const piece of pieces) {
    socket.write(piece)
    // Each piece must arrive separately.
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

/** The statuses of the responses in the received bytes, in order. */
export const statusesOf = (received: string): ReadonlyArray<number> =>
  [...received.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status))

/** A header block with these lines. */
export const head = (...lines: ReadonlyArray<string>): string => `${lines.join("\r\n")}\r\n\r\n`

/** A deposit to hide behind another request: the service must not process it. */
export const smuggledInto = (path: string): string => {
  const body = notification("smuggled")
  return head(
    `POST ${path} HTTP/1.1`,
    "Host: a",
    "Content-Type: application/xml",
    `Content-Length: ${body.length}`
  ) + body
}
