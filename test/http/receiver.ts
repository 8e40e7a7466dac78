/** A server on loopback that records its requests. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"

/** One complete request. */
export interface Received {
  readonly method: string
  readonly path: string
  readonly headers: IncomingMessage["headers"]
  readonly body: string
}

export interface Receiver {
  /** Without a slash at its end. */
  readonly origin: string
  readonly received: ReadonlyArray<Received>
  readonly close: () => Promise<void>
}

/** Starts a receiver; `answer` answers each request after its whole body. */
export const startReceiver = async (
  answer: (received: Received, response: ServerResponse) => void
): Promise<Receiver> => {
  const received: Array<Received> = []
  const take = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const chunks: Array<Buffer> = []
    for await (const chunk of request) chunks.push(chunk as Buffer) // a stream of bytes
    const one = {
      method: request.method ?? "",
      path: request.url ?? "",
      headers: request.headers,
      body: Buffer.concat(chunks).toString()
    }
    received.push(one)
    answer(one, response)
  }
  const server = createServer((request, response) => {
    take(request, response).catch(() => response.destroy())
  })
  const port = await new Promise<number>((resolve) =>
    server.listen(0, "127.0.0.1", () => {
      const address = server.address()
      resolve(typeof address === "object" && address !== null ? address.port : 0)
    })
  )
  return {
    origin: `http://127.0.0.1:${port}`,
    received,
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections()
        server.close(() => resolve())
      })
  }
}

const pollMs = 10
const withinMs = 120_000

/** Polls until the result is not undefined. */
export const eventually = async <A>(
  what: string,
  ask: () => Promise<A | undefined> | A | undefined
): Promise<A> => {
  const endMs = performance.now() + withinMs
  for (;;) {
    const answer = await ask()
    if (answer !== undefined) return answer
    if (performance.now() > endMs) throw new Error(`${what}: not within ${withinMs} ms`)
    await new Promise((resolve) => setTimeout(resolve, pollMs))
  }
}
