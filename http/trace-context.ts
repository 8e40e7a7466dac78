/**
 * The trace that a request belongs to (W3C Trace Context §3.2; an invalid header is ignored), and
 * the span of a request, by the semantic conventions of OpenTelemetry for HTTP.
 */
import type { Effect } from "effect"
import { knownTraceparent, withTraceparent } from "../runtime/index.ts"
import type { Parameters, Service } from "./pipeline/index.ts"
import type { HttpRequest } from "./wire/index.ts"

/** The span of one request. */
export interface RequestSpan {
  readonly traceparent: string
  /** Ends the span with the status of the answer. */
  readonly end: (status: number) => void
}

/** Runs the effect of a request in its span or its trace, which asks to other nodes then carry. */
export const withTraceContext = <A, E>(
  { headers }: HttpRequest,
  effect: Effect.Effect<A, E>,
  span?: RequestSpan
): Effect.Effect<A, E> =>
  withTraceparent(span === undefined ? headers.get("traceparent") : span.traceparent, effect)

/** The `traceparent` to pass on; undefined without a valid one. */
export const traceparentOf = ({ headers }: HttpRequest): string | undefined => {
  const header = headers.get("traceparent")
  return header === undefined ? undefined : knownTraceparent(header)
}

/** The methods that the conventions know; a client may send any other word, which is `_OTHER`. */
const knownMethods = new Set([
  "CONNECT",
  "DELETE",
  "GET",
  "HEAD",
  "OPTIONS",
  "PATCH",
  "POST",
  "PUT",
  "QUERY",
  "TRACE"
])

/** The parameters of paths that are names. Each other one may be all that a client must know. */
const namedParameters = new Set(["account", "mailbox"])

/** A name that its owner chose. The name of a mailbox without one is 32 random digits. */
const shownName = /^(?![0-9a-f]{32}$)[A-Za-z0-9_-]{1,100}$/

/**
 * The path of a request without secrets: the pattern, with the names of mailboxes and accounts. The
 * secret part of a shared URI, and every id that was drawn at random, stay in braces.
 */
const pathOf = (route: string, parameters: Parameters | undefined): string =>
  route.replace(/\{(\w+)\}/g, (whole, parameter: string) => {
    if (!namedParameters.has(parameter) || parameters?.has(parameter) !== true) return whole
    const name = parameters.get(parameter)
    return shownName.test(name) ? name : whole
  })

const errorStatusMin = 500

/**
 * Begins the span of a request; undefined if this node exports no traces, or the request is not
 * sampled. `route` is the pattern of its path. Headers, query and body are in no span.
 */
export const beginRequestSpan = (
  { settings, traces }: Service,
  request: HttpRequest,
  route?: string,
  parameters?: Parameters
): RequestSpan | undefined => {
  if (traces === undefined) return undefined
  const isKnown = knownMethods.has(request.method)
  const name = isKnown ? request.method : "HTTP"
  const span = traces.begin({
    name: route === undefined ? name : `${name} ${route}`,
    kind: "server",
    parent: traceparentOf(request)
  })
  if (span === undefined) return undefined
  return {
    traceparent: span.traceparent,
    end: (status) => {
      const attributes = {
        "http.request.method": isKnown ? request.method : "_OTHER",
        "url.scheme": settings.baseUrl.startsWith("https:") ? "https" : "http",
        ...route === undefined
          ? {}
          : { "http.route": route, "url.path": pathOf(route, parameters) },
        "http.response.status_code": status
      }
      span.end(attributes, status >= errorStatusMin ? String(status) : undefined)
    }
  }
}
