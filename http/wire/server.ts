/**
 * The HTTP server: the only importer of uWebSockets.js. It turns its stack-allocated requests into
 * plain values, bounds them, and hides every way in which a response can go away.
 */
import { createRequire } from "node:module"
import type { HttpRequest as NativeRequest, HttpResponse, us_listen_socket } from "uWebSockets.js"
import { makeProblem, problemReply, type ProblemSlug } from "../formats/index.ts"
import { drainGraceMs, eventHeartbeatMs, headerBlockBytesMax } from "../limits.ts"
import { Exchange, type Shared } from "./exchange.ts"
import { framingOf } from "./framing.ts"
import { type CorsOrigin, statusLines } from "./header-fields.ts"
import type { NativeResponse } from "./native-response.ts"
import { type HttpRequest, RequestHeaders } from "./request.ts"

export type { EventStream } from "./event-stream.ts"
export { Exchange } from "./exchange.ts"
export type { HttpReply } from "./exchange.ts"
export type { BodyFault, HttpRequest } from "./request.ts"

/** Answers a request, now or later; must not throw, and must read the body at once if at all. */
export type RequestHandler = (request: HttpRequest, exchange: Exchange) => void

export interface ListenOptions {
  readonly host: string
  /** 0 picks a free one. */
  readonly port: number
  readonly handler: RequestHandler
  /** Begins the URIs of problem types; no slash at its end. */
  readonly baseUrl: string
  /** A handler that threw (its request gets 500), or a streamed body that failed. */
  readonly onError: (error: unknown) => void
  /** Who may call from a browser; any origin unless given. */
  readonly cors?: { readonly origin: CorsOrigin }
  readonly headerBlockBytesMax?: number
}

export interface Server {
  readonly port: number
  /** Requests that are not answered yet, event streams among them. */
  readonly inFlight: () => number
  /**
   * Stops accepting, ends event streams, wakes long polls, waits for requests under way (no longer
   * than `timeoutMs`), then closes every connection.
   */
  readonly drain: (timeoutMs: number) => Promise<void>
}

/** The native server cannot run here, or the address cannot be had. */
export class ServerUnavailable extends Error {
  readonly _tag = "ServerUnavailable"
  readonly reason: "NativeModule" | "Address"
  constructor(reason: "NativeModule" | "Address", message: string, cause?: unknown) {
    super(message, { cause })
    this.reason = reason
  }
}

type Native = typeof import("uWebSockets.js")

/**
 * Loads the native module. The size of its header buffer is read from the environment when it is
 * loaded, and setting it here works; it only bounds a header block that arrives in several pieces,
 * so that `admit` counts again.
 */
const load = (): Native => {
  process.env["UWS_HTTP_MAX_HEADERS_SIZE"] ??= String(headerBlockBytesMax)
  try {
    // `require` has no types; the module's own describe what it returns.
    const native = createRequire(import.meta.url)("uWebSockets.js") as Native & {
      _cfg?: (option: string) => void
    }
    native._cfg?.("silent")
    return native
  } catch (cause) {
    // The library says first what it supports, then why it was not loaded, then where it looked.
    const why = String(cause).split("\n\n").at(-1)?.split("\n")[0]
    throw new ServerUnavailable(
      "NativeModule",
      `uWebSockets.js cannot be loaded by Node ${process.version} on ${process.platform} `
        + `${process.arch}: ${why}\nIt needs Node 20, 22, 24 or 25 and, on Linux, glibc: 2.27 or `
        + "newer for Node 20, 2.38 or newer (Debian 13, Ubuntu 24.04) for the others; not musl "
        + "(Alpine). Take Node 20, a newer system, or the container image; see docs/platforms.md.",
      cause
    )
  }
}

/** Fails as `listen` does where the native module does not run; before anything is opened. */
export const assertNative = (): void => void load()

let collected: Array<string> = []

const collect = (name: string, value: string): void => {
  collected.push(name, value)
}

const copyFields = (native: NativeRequest): Array<string> => {
  const flat: Array<string> = []
  collected = flat
  native.forEach(collect)
  return flat
}

class PlainRequest implements HttpRequest {
  readonly method: string
  readonly path: string
  readonly query: string
  readonly headers: RequestHeaders
  readonly #native: NativeResponse
  #remoteAddress: string | undefined

  constructor(native: NativeResponse, request: NativeRequest, flat: ReadonlyArray<string>) {
    this.method = request.getCaseSensitiveMethod()
    this.path = request.getUrl()
    // Declared as a string, but undefined where there is no `?`.
    this.query = (request.getQuery() as string | undefined) ?? ""
    this.headers = new RequestHeaders(flat)
    this.#native = native
  }

  /** Empty when it is first asked for after the answer or the client's leaving. */
  get remoteAddress(): string {
    if (this.#remoteAddress === undefined) {
      try {
        this.#remoteAddress = Buffer.from(this.#native.getRemoteAddressAsText()).toString("latin1")
      } catch {
        this.#remoteAddress = ""
      }
    }
    return this.#remoteAddress
  }
}

const answerProblem = (
  options: ListenOptions,
  request: HttpRequest,
  exchange: Exchange,
  slug: ProblemSlug,
  detail?: string
): void => {
  const { headers, path } = request
  const about = { accept: headers.get("accept"), path }
  exchange.reply(problemReply(makeProblem(slug, detail), about, options.baseUrl))
}

const dispatcher = (options: ListenOptions, shared: Shared) => {
  const max = options.headerBlockBytesMax ?? headerBlockBytesMax
  return (native: HttpResponse, source: NativeRequest): void => {
    const flat = copyFields(source)
    const request = new PlainRequest(native, source, flat)
    const framing = framingOf(request, flat, max)
    const { detail, refusal } = framing
    const exchange = new Exchange(native, shared, request.method === "HEAD", framing)
    try {
      if (refusal === undefined) options.handler(request, exchange)
      else answerProblem(options, request, exchange, refusal, detail)
    } catch (error) {
      options.onError(error)
      if (!exchange.answered) answerProblem(options, request, exchange, "internal")
    }
  }
}

const startHeartbeat = (shared: Shared): NodeJS.Timeout =>
  setInterval(() => {
    for (const stream of shared.streams) stream.send(":\n\n")
  }, eventHeartbeatMs).unref()

const settle = (shared: Shared, timeoutMs: number): Promise<void> =>
  new Promise((resolve) => {
    if (shared.inFlight === 0) return resolve()
    const timer = setTimeout(resolve, timeoutMs)
    shared.settled = () => {
      clearTimeout(timer)
      resolve()
    }
  })

/**
 * Listens. Fails with `ServerUnavailable`: `NativeModule` where the native module does not run,
 * `Address` when the address is taken or not there; a port is never shared with another process.
 */
export const listen = async (options: ListenOptions): Promise<Server> => {
  const native = load()
  const shared: Shared = {
    statusLine: statusLines(options.cors === undefined ? "*" : options.cors.origin),
    onError: options.onError,
    streams: new Set(),
    drainers: new Set(),
    inFlight: 0,
    draining: false,
    settled: undefined
  }
  const app = native.App().any("/*", dispatcher(options, shared))
  const socket = await new Promise<us_listen_socket | false>((resolve) => {
    // The types lack the form with host, port and options, which the module has.
    const bind = app.listen.bind(app) as unknown as (
      host: string,
      port: number,
      options: number,
      done: (socket: us_listen_socket | false) => void
    ) => void
    bind(options.host, options.port, exclusivePort, resolve)
  })
  if (socket === false) {
    const address = `${options.host}:${options.port}`
    throw new ServerUnavailable("Address", `cannot listen on ${address}: it is in use or not here`)
  }
  const port = native.us_socket_local_port(socket)
  const heartbeat = startHeartbeat(shared)
  let drained: Promise<void> | undefined
  const drain = async (timeoutMs: number): Promise<void> => {
    shared.draining = true
    native.us_listen_socket_close(socket)
    clearInterval(heartbeat)
    for (const stream of [...shared.streams]) stream.close()
    for (const wake of [...shared.drainers]) wake()
    await settle(shared, timeoutMs)
    await new Promise((resolve) => setTimeout(resolve, drainGraceMs))
    app.close()
  }
  return {
    port,
    inFlight: () => shared.inFlight,
    drain: (timeoutMs) => drained ??= drain(timeoutMs)
  }
}

/** LIBUS_LISTEN_EXCLUSIVE_PORT: without it the kernel would share the port among processes. */
const exclusivePort = 1
