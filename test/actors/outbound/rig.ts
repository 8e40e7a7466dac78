/** The client in a scope, and receivers of all kinds, for the tests of outbound requests. */
import { Effect, Exit, Scope } from "effect"
import { createServer as createHttp, type IncomingMessage, type RequestListener } from "node:http"
import { type AddressInfo, createServer as createTcp, type Server, type Socket } from "node:net"
import { onTestFinished } from "vitest"
import { makeOutbound, type OutboundOptions,
  type OutboundService } from "../../../actors/outbound/client.ts"
import type { BodySource, DeliveryOutcome, FetchOutcome, OutboundContent, OutboundPost,
  RequestCause } from "../../../actors/outbound/protocol.ts"

const brief = { drainMs: 100, nameTries: 1, waitMs: 5_000 }

/** Limits that end quickly: only for outcomes of requests that get no answer in time. */
export const quick = { ...brief, connectMs: 400, attemptMs: 800, nameTimeoutMs: 150 }

/** Limits for outcomes that do not depend on time, however slow the machine is. */
export const patient = { connectMs: 20_000, attemptMs: 40_000, nameTimeoutMs: 20_000 }

/** The account that causes the requests of most tests. */
export const cause: RequestCause = { kind: "account", id: "alice" }

const loopback = ["127.0.0.0/8"]

type Options = Pick<OutboundPost, "discovers" | "toLinkedData" | "deliverLocally">

export interface Client {
  readonly outbound: OutboundService
  readonly post: (
    uri: string,
    more?: Partial<OutboundContent & BodySource & Pick<OutboundPost, "cause">> & Options
  ) => Promise<DeliveryOutcome>
  readonly get: (uri: string, bytesMax?: number) => Promise<FetchOutcome>
}

/** A client that may reach the loopback network, unless the options differ. */
export const client = async (options: Partial<OutboundOptions> = {}): Promise<Client> => {
  const scope = Effect.runSync(Scope.make())
  onTestFinished(() => Effect.runPromise(Scope.close(scope, Exit.void)))
  const made = makeOutbound({
    allow: loopback,
    userAgent: "restante/test",
    nowMs: () => Date.now(),
    random: () => 0,
    hostsFile: "/nowhere/hosts",
    ...options,
    limits: { ...brief, ...patient, ...options.limits }
  })
  const outbound = await Effect.runPromise(Scope.provide(made, scope))
  return {
    outbound,
    post: (uri, more) =>
      Effect.runPromise(outbound.post({ uri, cause, headers: {}, body: "<item/>", ...more })),
    get: (uri, bytesMax = 1_000) => Effect.runPromise(outbound.get({ uri, cause, bytesMax }))
  }
}

/** Listens on a port of its own until the test is over. */
export const listening = async (server: Server, host = "127.0.0.1"): Promise<number> => {
  const sockets = new Set<Socket>()
  server.on("connection", (socket: Socket) => {
    sockets.add(socket)
    socket.on("error", () => undefined)
    socket.once("close", () => sockets.delete(socket))
  })
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject)
    server.listen(0, host, resolve)
  })
  onTestFinished(async () => {
    for (const socket of sockets) socket.destroy()
    await new Promise((resolve) => server.close(resolve))
  })
  return (server.address() as AddressInfo).port // of a TCP server that listens
}

/** One received request. */
export interface ReceivedRequest {
  readonly method: string
  readonly path: string
  readonly headers: IncomingMessage["headers"]
  readonly body: string
}

export interface Receiver {
  readonly port: number
  readonly uri: string
  readonly came: Array<ReceivedRequest>
}

/** An HTTP server that records requests, then responds. */
export const receiver = async (answer: RequestListener, host = "127.0.0.1"): Promise<Receiver> => {
  const came: Array<ReceivedRequest> = []
  const server = createHttp((request, response) => {
    let body = ""
    request.setEncoding("utf8")
    request.on("data", (chunk: string) => {
      body += chunk
    })
    request.on("end", () => {
      const { headers, method = "", url: path = "" } = request
      came.push({ method, path, headers, body })
      answer(request, response)
    })
  })
  const port = await listening(server, host)
  return { port, uri: `http://${host}:${port}`, came }
}

/** A receiver that answers all with this code and these headers. */
export const answering = (
  code: number,
  headers: Readonly<Record<string, string>> = {},
  body: string | Uint8Array = ""
): Promise<Receiver> =>
  receiver((_, response) => {
    response.writeHead(code, headers).end(body)
  })

/** A TCP server that writes raw bytes to each connection; gives its URI. */
export const speaking = async (
  talk: (socket: Socket) => void
): Promise<{ readonly uri: string; readonly connections: () => number }> => {
  let connections = 0
  const server = createTcp((socket) => {
    connections += 1
    talk(socket)
  })
  return { uri: `http://127.0.0.1:${await listening(server)}`, connections: () => connections }
}

/** A listener that nothing may reach, on every address of this machine that there is. */
export const guarded = async (): Promise<
  { readonly port: number; readonly hits: () => number }
> => {
  let hits = 0
  const make = () =>
    createTcp((socket) => {
      hits += 1
      socket.end("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
    })
  const port = await listening(make(), "::").catch(() => listening(make(), "0.0.0.0"))
  return { port, hits: () => hits }
}

/** A port of the loopback at which nothing listens. */
export const closedPort = async (): Promise<number> => {
  const server = createTcp()
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const { port } = server.address() as AddressInfo // of a TCP server that listens
  await new Promise((resolve) => server.close(resolve))
  return port
}

/** A connection is free for its next request one turn of the event loop after a response. */
export const connectionIsFree = (): Promise<void> =>
  new Promise((resolve) => setImmediate(() => setImmediate(resolve)))
