/** `/openapi.json`: the description of all that the table routes (protocol §6). */
import { Effect } from "effect"
import { accounts } from "../accounts/openapi.ts"
import { cabinets } from "../cabinets/openapi.ts"
import type { Call, HandlerAnswer, ResourceHandler } from "../call.ts"
import { cluster } from "../cluster/openapi.ts"
import { content } from "../content/openapi.ts"
import { customers } from "../customers/openapi.ts"
import { fail, type HandlerFailure } from "../failures.ts"
import { home } from "../home/openapi.ts"
import { inside } from "../inside/openapi.ts"
import { fixedMaxAgeSeconds } from "../limits.ts"
import { mailboxes } from "../mailboxes/openapi.ts"
import { choose } from "../negotiate.ts"
import { outgoing } from "../outgoing/openapi.ts"
import { evaluate } from "../preconditions.ts"
import { queries } from "../queries/openapi.ts"
import { quotes } from "../quotes/openapi.ts"
import { registrations } from "../registrations/openapi.ts"
import { entityTag } from "../representations.ts"
import type { Route } from "../routing.ts"
import type { Service } from "../service.ts"
import { sessions } from "../sessions/openapi.ts"
import { type DescribedRow, documentOf, type DocumentPart } from "./document.ts"
import type { Area, Method } from "./operation.ts"

export type { DocumentPart } from "./document.ts"

/** Where the document is. */
export const openapiPath = "/openapi.json"

const areas: ReadonlyArray<Area> = [
  home,
  content,
  mailboxes,
  registrations,
  outgoing,
  cabinets,
  sessions,
  quotes,
  customers,
  queries,
  accounts,
  cluster,
  inside
]

const isMethod = (method: string): method is Method =>
  method === "GET" || method === "POST" || method === "PUT" || method === "DELETE"

/**
 * Every row of the routing table with its description. Throws (a defect, at start) for a row that
 * has none, and for a description that has no row.
 */
const rowsOf = (routes: ReadonlyArray<Route<unknown>>): ReadonlyArray<DescribedRow> => {
  const described = new Map(
    areas.flatMap((area) =>
      Object.entries(area.operations).map(([key, operation]) => [key, { area, operation }] as const)
    )
  )
  const rows = routes.flatMap(({ methods, pattern }) =>
    Object.keys(methods).map((method): DescribedRow => {
      const key = `${method} ${pattern}`
      const found = described.get(key)
      if (found === undefined || !isMethod(method)) {
        throw new Error(`${key} is routed, and not described in any area's openapi.ts`)
      }
      described.delete(key)
      const { area, operation } = found
      return { area, placed: { method, pattern, operation } }
    })
  )
  const [stranger] = described.keys()
  if (stranger !== undefined) throw new Error(`${stranger} is described, and not routed`)
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
  const type = choose(headers.get("accept"), types)
  if (type === undefined) {
    return Effect.fail(
      fail("not-acceptable", `there is ${types.join(", ")}`, [], { available: types })
    )
  }
  const etag = etags.get(type) ?? ""
  const fields: ReadonlyArray<readonly [string, string]> = [
    ["ETag", etag],
    ["Vary", "Accept"],
    ["Cache-Control", `public, max-age=${fixedMaxAgeSeconds}`]
  ]
  switch (evaluate(method, headers, { exists: true, etag })) {
    case "failed":
      return Effect.fail(fail("precondition-failed"))
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

/** The routing table with the document of all of it, which is made when it is first asked for. */
export const described = (
  { settings }: Service,
  routes: ReadonlyArray<Route<ResourceHandler>>
): ReadonlyArray<Route<ResourceHandler>> => {
  let served: Served | undefined
  const serve = (): Served => {
    const bytes = Buffer.from(`${JSON.stringify(documentOf(settings, rows))}\n`)
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

/** The document of a routing table, for those that check what is answered against it. */
export const openapiOf = (
  settings: Service["settings"],
  routes: ReadonlyArray<Route<unknown>>
): DocumentPart => documentOf(settings, rowsOf(routes))
