import { createServer, type IncomingMessage, type Server } from "node:http"
import { pipeline } from "node:stream/promises"

/** The body of a request, of which nothing is read before the handler wants it. */
const bodyOf = (incoming: IncomingMessage): ReadableStream<Uint8Array> => {
  const parts = incoming[Symbol.asyncIterator]()
  const pull = async (controller: ReadableStreamDefaultController<Uint8Array>) => {
    const part = await parts.next()
    if (part.done === true) controller.close()
    else controller.enqueue(part.value)
  }
  return new ReadableStream({ pull }, { highWaterMark: 0 })
}

/** A server of Node for a function from a request to its answer. */
export const serverOf = (handler: (request: Request) => Promise<Response>): Server =>
  createServer((incoming, outgoing) => {
    const respond = async (): Promise<void> => {
      const { headers, method = "GET", url = "/" } = incoming
      const fields = Object.entries(headers).map(([name, value]) => [name, String(value)] as const)
      const body = ["GET", "HEAD"].includes(method) ? null : bodyOf(incoming)
      const gone = new AbortController()
      outgoing.once("close", () => gone.abort())
      const init = {
        method,
        headers: Object.fromEntries(fields),
        body,
        signal: gone.signal,
        duplex: "half" as const
      }
      const answer = await handler(new Request(new URL(url, "http://localhost"), init))
      // What is left of a body would be taken for the next request.
      if (incoming.readableDidRead && !incoming.complete) outgoing.shouldKeepAlive = false
      outgoing.writeHead(answer.status, [...answer.headers].flat())
      if (answer.body === null) outgoing.end()
      else await pipeline(answer.body, outgoing)
    }
    // What the web has no request for, such as TRACE; or the client has gone.
    respond().catch(() => outgoing.headersSent ? outgoing.destroy() : outgoing.writeHead(400).end())
  })
