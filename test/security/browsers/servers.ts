/** The servers around the service under test: on loopback, under names that browsers resolve. */
import { createServer, type IncomingMessage, request as send, type Server,
  type ServerResponse } from "node:http"
import { asAdmin } from "../../e2e/client.ts"

/** The service, another host of its site, and a host of another site. */
export const hosts = {
  service: "post.service.localhost",
  sibling: "pages.service.localhost",
  foreign: "elsewhere.localhost"
}

type Answering = (request: IncomingMessage, response: ServerResponse) => void

/** A server on a free port. */
export class LocalServer {
  readonly port: number
  private readonly server: Server

  private constructor(server: Server, port: number) {
    this.server = server
    this.port = port
  }

  static listen(answer: Answering): Promise<LocalServer> {
    return new Promise((resolve) => {
      const server = createServer(answer)
      server.listen(0, "127.0.0.1", () => {
        const address = server.address()
        if (address === null || typeof address === "string") throw new Error("no port")
        resolve(new LocalServer(server, address.port))
      })
    })
  }

  originAs(host: string): string {
    return `http://${host}:${this.port}`
  }

  close(): void {
    this.server.closeAllConnections()
    this.server.close()
  }
}

/** The server that only a browser that was deceived talks to: `/7` is for the mark 7. */
export class Beacons {
  readonly origin: string
  private readonly server: LocalServer
  private readonly hits: Array<string>

  private constructor(server: LocalServer, hits: Array<string>) {
    this.server = server
    this.origin = server.originAs("127.0.0.1")
    this.hits = hits
  }

  static async listen(): Promise<Beacons> {
    const hits: Array<string> = []
    const server = await LocalServer.listen(({ headers, url = "" }, response) => {
      hits.push(`${url} for ${headers["sec-fetch-dest"] ?? headers["user-agent"] ?? "?"}`)
      response.writeHead(200, { "content-type": "text/javascript", "cache-control": "no-store" })
      response.end(`self.ran?.(${Number(url.slice(1))})`)
    })
    return new Beacons(server, hits)
  }

  /** The requests since the last call. */
  taken(): ReadonlyArray<string> {
    return this.hits.splice(0)
  }

  close(): void {
    this.server.close()
  }
}

/** A request whose answer a browser is to load. */
export interface Target {
  /** The operation, and which of its answers this is. */
  readonly label: string
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
}

/** What the service answered when a browser loaded a target. */
export interface Loaded {
  readonly status: number
  readonly type: string
  /** What the browser said that it would do with it (`Sec-Fetch-Dest`). */
  readonly destination: string
  /** The reference to the next page in the Link field. */
  readonly next: string | undefined
}

const parameter = "restante-target"

/** The next page that a Link field names (RFC 8288, section 3). */
const nextIn = (link: string | ReadonlyArray<string> | undefined): string | undefined =>
  /<([^>]*)>; rel="next"/.exec(String(link))?.[1]

/**
 * Stands before the service, at its BASE_URL. Every request gets the credentials of the admin, as
 * if each browser had them and sent them wherever it may. A URI can name a target, so that a plain
 * navigation also loads what needs another method or Accept field.
 */
export class Front {
  readonly origin: string
  private readonly server: LocalServer
  private readonly targets: Array<Target> = []
  private readonly loaded = new Map<number, Array<Loaded>>()
  private readonly changes: Array<string> = []
  private upstreamPort = 0

  private constructor(server: LocalServer) {
    this.server = server
    this.origin = server.originAs(hosts.service)
  }

  static async listen(): Promise<Front> {
    const fronts: Array<Front> = []
    const server = await LocalServer.listen((request, response) => {
      for (const front of fronts) front.pass(request, response)
    })
    const front = new Front(server)
    fronts.push(front)
    return front
  }

  /** Passes all requests to the service at this port. */
  serve(port: number): void {
    this.upstreamPort = port
  }

  /** A URI at which a browser loads the target. */
  uriOf(target: Target): string {
    this.targets.push(target)
    const separator = target.path.includes("?") ? "&" : "?"
    return `${this.origin}${target.path}${separator}${parameter}=${this.targets.length - 1}`
  }

  /** The answers to the target of a URI so far. */
  answersTo(uri: string): ReadonlyArray<Loaded> {
    return this.loaded.get(Number(uri.split(`${parameter}=`)[1])) ?? []
  }

  /** The POST requests that named no target, since the last call: path and status. */
  changesTaken(): ReadonlyArray<string> {
    return this.changes.splice(0)
  }

  private pass(request: IncomingMessage, response: ServerResponse): void {
    const { headers, url = "" } = request
    const [path = "", named] = url.split(new RegExp(`[?&]${parameter}=`))
    const target = named === undefined ? undefined : this.targets[Number(named)]
    const passed = send({
      port: this.upstreamPort,
      method: target?.method ?? request.method,
      path,
      headers: { ...headers, ...asAdmin, ...target?.headers }
    }, (answer) => {
      const type = answer.headers["content-type"] ?? ""
      const destination = String(headers["sec-fetch-dest"])
      const next = nextIn(answer.headers["link"])
      const loaded = { status: answer.statusCode ?? 0, type, destination, next }
      if (target !== undefined) {
        this.loaded.set(Number(named), [...this.loaded.get(Number(named)) ?? [], loaded])
      } else if (request.method === "POST") this.changes.push(`${path}: ${loaded.status}`)
      response.writeHead(loaded.status, answer.headers)
      answer.pipe(response)
      // A document that never ends would never be loaded; scripts read the stream as it is.
      if (type.startsWith("text/event-stream") && destination !== "empty") {
        answer.on("data", (chunk) => {
          if (!String(chunk).includes("data:")) return
          answer.unpipe(response)
          response.end()
          passed.destroy()
        })
      }
    })
    passed.on("error", () => response.destroy())
    response.on("close", () => passed.destroy())
    if (target?.body === undefined) request.pipe(passed)
    else passed.end(target.body)
  }

  close(): void {
    this.server.close()
  }
}
