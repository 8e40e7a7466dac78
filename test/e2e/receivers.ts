/** Receivers on loopback: mailboxes of other services, and callbacks of push subscribers. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import { childOf, type Node, parseXml } from "./client.ts"

/** A complete request. */
export interface Received {
  readonly method: string
  readonly path: string
  readonly headers: IncomingMessage["headers"]
  readonly body: string
}

type Answering = (received: Received, response: ServerResponse) => void

const bodyOf = async (request: IncomingMessage): Promise<string> => {
  const chunks: Array<Buffer> = []
  for await (const chunk of request) chunks.push(chunk as Buffer) // a stream of bytes
  return Buffer.concat(chunks).toString()
}

const servers = new Set<Server>()

/** Ends every receiver: for `afterAll`. */
export const closeReceivers = (): void => {
  for (const server of servers) {
    server.closeAllConnections()
    server.close()
  }
  servers.clear()
}

/** A server on a free port; it ignores incomplete requests. */
export const receiver = (answer: Answering, host = "127.0.0.1"): Promise<string> =>
  new Promise((resolve) => {
    const server = createServer((request, response) => {
      bodyOf(request).then(
        (body) => {
          const { headers, method = "", url: path = "" } = request
          answer({ method, path, headers, body }, response)
        },
        () => response.destroy()
      )
    })
    servers.add(server)
    server.listen(0, host, () => {
      const address = server.address()
      if (address === null || typeof address === "string") throw new Error("no port")
      resolve(`http://${host}:${address.port}`)
    })
  })

/** The description of a relayed notification. */
export const descriptionOf = (body: string): string =>
  childOf(childOf(parseXml(body), "item"), "description").text

/** Answers a verification of intent; returns false for other requests. */
export const echoes = ({ path }: Received, response: ServerResponse): boolean => {
  const challenge = new URL(path, "http://callback.test").searchParams.get("hub.challenge")
  if (challenge === null) return false
  response.end(challenge)
  return true
}

/** A receiver that responds only after the test calls `answers`. */
export class ControlledReceiver {
  private status: number | undefined
  private readonly waiting: Array<ServerResponse> = []

  /** Responds to the waiting requests and to all later ones. */
  answers(status: number): void {
    this.status = status
    for (const response of this.waiting.splice(0)) response.writeHead(status).end()
  }

  take(response: ServerResponse): void {
    if (this.status === undefined) this.waiting.push(response)
    else response.writeHead(this.status).end()
  }
}

/** Starts a {@link ControlledReceiver}, which also echoes challenges. */
export const startReceiver = async (): Promise<
  { readonly at: ControlledReceiver; readonly uri: string }
> => {
  const at = new ControlledReceiver()
  const origin = await receiver((received, response) => {
    if (!echoes(received, response)) at.take(response)
  })
  return { at, uri: `${origin}/inbox` }
}

/** Answers a HEAD as a message that takes receipts; returns false for other requests. */
export const takesReceipts = ({ method }: Received, response: ServerResponse): boolean => {
  if (method !== "HEAD") return false
  response.writeHead(200, { "accept-post": "application/xml" }).end()
  return true
}

/** The notifications of a push, in order. */
export const pushed = (body: string): ReadonlyArray<Node> =>
  parseXml(body).children.filter(({ name }) => name === "notification")

/** The fault of a flaky peer at this request; `turn` counts requests from 0. */
export const misbehave = (turn: number, response: ServerResponse): boolean => {
  switch (turn % 4) {
    case 0:
      response.writeHead(503).end()
      return true
    case 1:
      response.destroy()
      return true
    default:
      return false
  }
}
