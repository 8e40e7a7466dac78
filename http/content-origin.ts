/**
 * The origin of `CONTENT_BASE_URL` (protocol §7, Origin of content). Requests to its host name read
 * content and send receipts, and nothing else: there are no pages, no cookies and no other
 * resources. The service's own host name answers a reader of content with a redirect to it.
 */
import { Effect } from "effect"
import { parseUrl } from "../actors/index.ts"
import { hasProblemPage } from "./formats/index.ts"
import { compileRoutes, emptyAnswer, isPageRequest, type ResourceHandler, type Route,
  type Service } from "./pipeline/index.ts"
import type { HttpRequest, RequestHeaders } from "./wire/index.ts"

type Routes = ReadonlyArray<Route<ResourceHandler>>

/** The host name in a `Host` field: without the port, which some proxies leave out, and a dot. */
const hostNameOf = (field: string): string =>
  field.trim().replace(/:\d*$/, "").replace(/\.$/, "").toLowerCase()

/** The host name of an origin, as `hostNameOf` writes it. */
const hostNameIn = (origin: string): string => hostNameOf(parseUrl(origin)?.host ?? "")

/** Whether an answer may be a page: some requests get one with a problem alone. */
const mayShowPage = (request: HttpRequest): boolean =>
  isPageRequest(request) || hasProblemPage(request.headers.get("accept"))

/** Accept of a browser's request here: text, because the service's pages have another origin. */
const withoutPages = "text/plain, application/xml;q=0.9"

/** A request to this origin: no cookie counts here, and no answer is a page. */
class ContentRequest implements HttpRequest {
  readonly method: string
  readonly path: string
  readonly query: string
  readonly headers: RequestHeaders
  private readonly request: HttpRequest

  constructor(request: HttpRequest) {
    const headers = request.headers.without("cookie")
    this.method = request.method
    this.path = request.path
    this.query = request.query
    this.headers = mayShowPage(request) ? headers.with("accept", withoutPages) : headers
    this.request = request
  }

  get remoteAddress(): string {
    return this.request.remoteAddress
  }
}

/** The routes with those handlers that `select` returns; a path without any is left out. */
const handlersOf = (
  routes: Routes,
  select: (handler: ResourceHandler) => ResourceHandler | undefined
): Routes =>
  routes.flatMap((route) => {
    const methods = Object.entries(route.methods).flatMap(([method, handler]) => {
      const selected = select(handler)
      return selected === undefined ? [] : [[method, selected] as const]
    })
    return methods.length === 0 ? [] : [{ ...route, methods: Object.fromEntries(methods) }]
  })

export class ContentOrigin {
  /** Finds the handler of a request to this origin. */
  readonly match: ReturnType<typeof compileRoutes<ResourceHandler>>
  /** Added to the detail of a refusal. */
  readonly advice: string
  private readonly clients: Service["clients"]
  private readonly hostName: string
  private readonly serviceHostName: string

  constructor(contentBaseUrl: string, { clients, settings }: Service, routes: Routes) {
    this.match = compileRoutes(
      handlersOf(
        routes,
        (handler) => handler.contentOrigin === undefined ? undefined : handler
      )
    )
    this.advice = `${contentBaseUrl} only serves content; use ${settings.baseUrl}`
    this.clients = clients
    this.hostName = hostNameIn(contentBaseUrl)
    this.serviceHostName = hostNameIn(settings.baseUrl)
  }

  /** The request, as it is handled here; undefined if it is for the service's own origin. */
  requestOf(request: HttpRequest): HttpRequest | undefined {
    return this.isFor(request) ? new ContentRequest(request) : undefined
  }

  /**
   * Whether the client asked for this host name. X-Forwarded-Host tells it only where a trusted
   * proxy has changed Host. The first members of that field may be the client's own.
   */
  private isFor(request: HttpRequest): boolean {
    const { headers } = request
    const hostName = hostNameOf(headers.get("host") ?? "")
    if (hostName === this.hostName) return true
    if (hostName === this.serviceHostName) return false
    const last = headers.get("x-forwarded-host")?.split(",").at(-1)
    return last !== undefined && hostNameOf(last) === this.hostName &&
      this.clients.isTrustedProxy(request)
  }
}

/** The routes of the service's own origin, at which readers of content are redirected. */
export const redirectingRoutes = (contentBaseUrl: string, routes: Routes): Routes => {
  const redirect: ResourceHandler = {
    handle: ({ request: { path, query } }) =>
      Effect.succeed(emptyAnswer(307, [
        ["Location", `${contentBaseUrl}${path}${query === "" ? "" : `?${query}`}`],
        ["Cache-Control", "no-cache"],
        // Any page may show what was published.
        ["Cross-Origin-Resource-Policy", "cross-origin"]
      ]))
  }
  return handlersOf(
    routes,
    (handler) => handler.contentOrigin === "only" ? redirect : handler
  )
}
