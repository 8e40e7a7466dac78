/**
 * The HTTP server. It copies the requests of uWebSockets.js, which are valid only within the
 * callback, into plain values; it bounds them and handles aborted responses.
 */
import { makeProblem, pagelessProblemReply, type ProblemSlug } from "../formats/index.ts"
import { tmpdir } from "node:os"
import { drainGraceMs, eventHeartbeatMs } from "../limits.ts"
import { Exchange, PacketEnd, type Shared } from "./exchange.ts"
import { UnreadBudget } from "./answers/index.ts"
import { BodyBudget } from "./body-budget.ts"
import { type CorsOrigin, statusLines } from "./header-fields.ts"
import { type HttpResponse, type ListenSocket, loadNative, type NativeRequest,
  ServerUnavailable } from "./native-module.ts"
import type { NativeResponse } from "./native-response.ts"
import { framingOf, type HttpRequest, RequestHeaders } from "./request.ts"
import { SpillFolder, type SpillSettings } from "./uploads/index.ts"

/** Answers a request, now or later. It must begin to read the body before it returns. */
export type RequestHandler = (request: HttpRequest, exchange: Exchange) => void

export interface ListenOptions {
  readonly host: string
  /** 0 selects a free port. */
  readonly port: number
  readonly handler: RequestHandler
  /** The start of the URIs of problem types, without a slash at its end. */
  readonly baseUrl: string
  /** Receives the error of a handler that threw (answered with 500) and of a failed stream. */
  readonly onError: (error: unknown) => void
  readonly corsOrigin: CorsOrigin
  /** Where the bytes of uploads wait; in the folder of the system by default. */
  readonly spills?: SpillSettings | undefined
  /** The network of a request's client; by default its address. */
  readonly networkOf?: (request: HttpRequest) => string
  /** Answers that their clients do not read; with the limits of the service by default. */
  readonly unread?: UnreadBudget
}

export interface Server {
  readonly port: number
  /** The number of unanswered requests, including event streams. */
  readonly inFlight: () => number
  /**
   * Stops accepting connections, ends event streams and long polls, waits for current requests, at
   * most `timeoutMs`, then closes every connection.
   */
  readonly drain: (timeoutMs: number) => Promise<void>
}

/** Copies the fields of one request after the other without a closure for each request. */
class FieldCollector {
  private flat: Array<string> = []
  private readonly add = (name: string, value: string): void => {
    this.flat.push(name, value)
  }

  /** Name, value, name, value … */
  copy(native: NativeRequest): ReadonlyArray<string> {
    const flat: Array<string> = []
    this.flat = flat
    native.forEach(this.add)
    return flat
  }
}

class PlainRequest implements HttpRequest {
  readonly method: string
  readonly path: string
  readonly query: string
  readonly headers: RequestHeaders
  private readonly native: NativeResponse
  private remoteAddressText: string | undefined

  constructor(native: NativeResponse, request: NativeRequest, flat: ReadonlyArray<string>) {
    this.method = request.getCaseSensitiveMethod()
    this.path = request.getUrl()
    // Declared as a string, but undefined where there is no `?`.
    this.query = (request.getQuery() as string | undefined) ?? ""
    this.headers = new RequestHeaders(flat)
    this.native = native
  }

  /** Empty if it is first read after the answer, or after the client left. */
  get remoteAddress(): string {
    if (this.remoteAddressText === undefined) {
      try {
        this.remoteAddressText = Buffer.from(this.native.getRemoteAddressAsText()).toString(
          "latin1"
        )
      } catch {
        this.remoteAddressText = ""
      }
    }
    return this.remoteAddressText
  }
}

/** Never with a page: whether the request is for an origin that has pages is not known here. */
const answerProblem = (
  options: ListenOptions,
  request: HttpRequest,
  exchange: Exchange,
  slug: ProblemSlug,
  detail?: string
): void => {
  exchange.reply(pagelessProblemReply(makeProblem(slug, detail), request, options.baseUrl))
}

const dispatcher = (options: ListenOptions, shared: Shared) => {
  const collector = new FieldCollector()
  return (native: HttpResponse, source: NativeRequest): void => {
    const flat = collector.copy(source)
    const request = new PlainRequest(native, source, flat)
    const framing = framingOf(request, flat)
    const { detail, refusal } = framing
    const exchange = new Exchange(native, shared, request, framing)
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
    for (const stream of shared.streams) {
      // One whose client reads on needs none, and may not be ended by it.
      if (stream.isFlowing) stream.send(":\n\n")
    }
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
 * Listens. Fails with `ServerUnavailable`: `NativeModule` if the native module does not load,
 * `Address` if the address is in use or not local. It never shares a port with another process.
 */
export const listen = async (options: ListenOptions): Promise<Server> => {
  const native = loadNative()
  const shared: Shared = {
    statusLines: statusLines(options.corsOrigin),
    bodies: new BodyBudget(),
    unread: options.unread ?? new UnreadBudget(),
    networkOf: options.networkOf ?? (({ remoteAddress }) => remoteAddress),
    spills: new SpillFolder(options.spills ?? { path: tmpdir() }),
    packetEnd: new PacketEnd(),
    onError: options.onError,
    streams: new Set(),
    drainers: new Set(),
    inFlight: 0,
    turnBytes: 0,
    draining: false,
    settled: undefined
  }
  const app = native.App().any("/*", dispatcher(options, shared))
  const socket = await new Promise<ListenSocket | false>((resolve) => {
    // The types lack the form with host, port and options, which the module has.
    const bind = app.listen.bind(app) as unknown as (
      host: string,
      port: number,
      options: number,
      done: (socket: ListenSocket | false) => void
    ) => void
    bind(options.host, options.port, exclusivePort, resolve)
  })
  if (socket === false) {
    const address = `${options.host}:${options.port}`
    throw new ServerUnavailable(
      "Address",
      `cannot listen on ${address}, which is in use or no address of this machine: end the ` +
        "program that has it, or set another PORT or HOST"
    )
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
