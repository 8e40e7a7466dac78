/** `/openapi.json`: the description of every route (protocol §6). */
import { Effect } from "effect"
import { entityTag, negotiate } from "./formats/index.ts"
import { type DescribedRoute, type DocumentPart, makeDocument, type Method,
  type OperationGroup } from "./formats/openapi/index.ts"
import { fixedMaxAgeSeconds } from "./limits.ts"
import { type Call, evaluatePreconditions, type HandlerAnswer, type HandlerFailure, httpError,
  type ResourceHandler, type Route, type Service } from "./pipeline/index.ts"
import { accountOperations } from "./resources/accounts/index.ts"
import { cabinetOperations } from "./resources/cabinets/index.ts"
import { clusterOperations } from "./resources/cluster/index.ts"
import { contentOperations } from "./resources/content/index.ts"
import { customerOperations } from "./resources/customers/index.ts"
import { homeOperations } from "./resources/home/index.ts"
import { mailboxOperations } from "./resources/mailboxes/index.ts"
import { observabilityOperations } from "./resources/observability/index.ts"
import { outgoingOperations } from "./resources/outgoing/index.ts"
import { queryOperations } from "./resources/queries/index.ts"
import { quoteOperations } from "./resources/quotes/index.ts"
import { registrationOperations } from "./resources/registrations/index.ts"
import { sessionOperations } from "./resources/sessions/index.ts"

export type { DocumentPart } from "./formats/openapi/index.ts"

export const openapiPath = "/openapi.json"

const areas: ReadonlyArray<OperationGroup> = [
  homeOperations,
  contentOperations,
  mailboxOperations,
  registrationOperations,
  outgoingOperations,
  cabinetOperations,
  sessionOperations,
  quoteOperations,
  customerOperations,
  queryOperations,
  accountOperations,
  clusterOperations,
  observabilityOperations
]

const isMethod = (method: string): method is Method =>
  method === "GET" || method === "POST" || method === "PUT" || method === "DELETE"

/**
 * Every route with its description. Throws (a defect, at start) for a route without a description
 * and for a description without a route.
 */
const rowsOf = (routes: ReadonlyArray<Route<unknown>>): ReadonlyArray<DescribedRoute> => {
  const described = new Map(
    areas.flatMap((area) =>
      Object.entries(area.operations).map(([key, operation]) => [key, { area, operation }] as const)
    )
  )
  const rows = routes.flatMap(({ methods, pattern }) =>
    Object.keys(methods).map((method): DescribedRoute => {
      const key = `${method} ${pattern}`
      const found = described.get(key)
      if (found === undefined || !isMethod(method)) {
        throw new Error(`${key} is routed, but no resource describes it in its operations`)
      }
      described.delete(key)
      const { area, operation } = found
      return { area, placed: { method, pattern, operation } }
    })
  )
  const [unrouted] = described.keys()
  if (unrouted !== undefined) throw new Error(`${unrouted} is described, but not routed`)
  return rows
}

const types = ["application/json", "application/vnd.oai.openapi+json"]

interface Served {
  readonly bytes: Uint8Array
  /** By type: each representation has its own. */
  readonly etags: ReadonlyMap<string, string>
}

const answerOf = (
  { bytes, etags }: Served,
  { request }: Call
): Effect.Effect<HandlerAnswer, HandlerFailure> => {
  const { headers, method } = request
  const type = negotiate(headers.get("accept"), types)
  if (type === undefined) {
    return Effect.fail(
      httpError("not-acceptable", `there is ${types.join(", ")}`, [], { available: types })
    )
  }
  const etag = etags.get(type) ?? ""
  const fields: ReadonlyArray<readonly [string, string]> = [
    ["ETag", etag],
    ["Vary", "Accept"],
    ["Cache-Control", `public, max-age=${fixedMaxAgeSeconds}`]
  ]
  switch (evaluatePreconditions(method, headers, { exists: true, etag })) {
    case "failed":
      return Effect.fail(httpError("precondition-failed"))
    case "not-modified":
      return Effect.succeed({ _tag: "Plain", status: 304, headers: fields })
    case "proceed":
      return Effect.succeed({
        _tag: "Plain",
        status: 200,
        headers: [["Content-Type", type], ...fields],
        body: bytes
      })
  }
}

/** The routes together with `/openapi.json`, which is built on the first request for it. */
export const describedRoutes = (
  { settings }: Service,
  routes: ReadonlyArray<Route<ResourceHandler>>
): ReadonlyArray<Route<ResourceHandler>> => {
  let served: Served | undefined
  const serve = (): Served => {
    const bytes = Buffer.from(`${JSON.stringify(makeDocument(settings, rows))}\n`)
    const etags = types.map((type) =>
      [type, entityTag(Buffer.concat([Buffer.from(type), bytes]))] as const
    )
    return { bytes, etags: new Map(etags) }
  }
  const own: Route<ResourceHandler> = {
    pattern: openapiPath,
    methods: { GET: { handle: (call) => answerOf(served ??= serve(), call) } }
  }
  const all = [...routes, own]
  const rows = rowsOf(all)
  return all
}

/** The document of a routing table, for tests that check answers against it. */
export const openapiDocument = (
  settings: Service["settings"],
  routes: ReadonlyArray<Route<unknown>>
): DocumentPart => makeDocument(settings, rowsOf(routes))
