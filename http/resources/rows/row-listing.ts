/** Pages of rows: C1 without a symbol, and C2 (protocol §3). */
import { Effect } from "effect"
import type { PageLink } from "../../formats/html/index.ts"
import { formatParameter } from "../../formats/index.ts"
import { pagingParameters, type Parameter, uri } from "../../formats/openapi/index.ts"
import { pageEntriesDefault, sortedRowsMax } from "../../limits.ts"
import { absoluteUri, type Call, firstPage, type HandlerFailure, httpError, inPlace, readLimit,
  readQuery, type Service } from "../../pipeline/index.ts"
import { comparisonsOf, type CursorPosition, decodeCursor, encodeCursor, fieldsIn, fieldsPattern,
  filterOf, type NumberRange, type Order, type RowEntry, type RowFilter, type RowQuery, runQuery,
  spanOf, type TableSchema } from "../../query-engine/index.ts"
import { readNamedQuery } from "./query-store.ts"

/** The parameters that listings of customers and of quotes share. */
export const rowQuery = (table: TableSchema): Readonly<Record<string, Parameter>> => ({
  return: {
    description: "Fields to show, separated by spaces, plus signs or commas; else all.",
    schema: { type: "string", pattern: fieldsPattern([table]) }
  },
  query: { description: "The URI of a query, which must hold too.", schema: uri },
  ...pagingParameters
})

/** The fields of a query for rows; `return` may be repeated. */
export const readRowQuery = (call: Call): ReturnType<typeof readQuery> =>
  readQuery(call, ["return"])

/** A page of rows. */
export interface RowListing {
  readonly entries: ReadonlyArray<RowEntry>
  /** The fields to return; undefined for all. */
  readonly fields: ReadonlyArray<string> | undefined
  /** The query of the request, and its URI as sent. */
  readonly query: { readonly href: string; readonly query: RowQuery } | undefined
  readonly links: ReadonlyArray<PageLink>
}

/** The restriction of one table, beside the parameters that every listing accepts. */
export interface RowRestriction {
  /** Least value of the indexed field. */
  readonly least?: number
  /** The only row to return. */
  readonly key?: string
}

/** The parameters of a listing. */
interface ListingRequest {
  readonly parameters: ReadonlyArray<readonly [string, string]>
  readonly limit: number
  readonly fields: ReadonlyArray<string>
  readonly query: RowListing["query"]
  readonly order: Order
  readonly position: CursorPosition | undefined
}

/** Fails with 400, or with 422 for a query that does not fit the table. */
const readListingRequest = Effect.fnUntraced(function*(
  service: Service,
  call: Call,
  table: TableSchema
): Effect.fn.Return<ListingRequest, HandlerFailure> {
  const parameters = yield* readRowQuery(call)
  const limit = (yield* readLimit(parameters)) ?? pageEntriesDefault
  const href = parameters.get("query")
  const query = href === undefined
    ? undefined
    : { href, query: yield* readNamedQuery(service, href, table) }
  const fields = fieldsIn(table, parameters.all("return").join(" "))
  if (!fields.ok) return yield* httpError("malformed", fields.fault)
  const order: Order = query?.query.order ?? { by: table.key, descending: false }
  const after = parameters.get("after")
  const position = after === undefined ? undefined : decodeCursor(table, order, after)
  if (after !== undefined && position === undefined) {
    return yield* httpError(
      "malformed",
      "after is no cursor of this listing; follow the link of a page, or read without after",
      firstPage
    )
  }
  return { parameters: parameters.entries(), limit, fields: fields.value, query, order, position }
})

/** Parameters of the next page that are its own; the link of a format gets its format later. */
const pageParameters: ReadonlyArray<string> = ["limit", "after", formatParameter]

/** The URI of the next page: the same parameters, with another cursor. */
const nextUri = (
  service: Service,
  path: string,
  { limit, parameters }: ListingRequest,
  after: string
): string => {
  const others = parameters.filter(([name]) => !pageParameters.includes(name))
  const all = [...others, ["limit", String(limit)] as const, ["after", after] as const]
  const query = all.map(([name, value]) =>
    `${encodeURIComponent(name)}=${encodeURIComponent(value)}`
  )
  return `${absoluteUri(service, path)}?${query.join("&")}`
}

/** The filter of a listing, and the bounds of the indexed field for the rows that it accepts. */
const filterAndSpan = (
  table: TableSchema,
  query: RowQuery | undefined,
  { least }: RowRestriction
): { readonly filter: RowFilter; readonly span: NumberRange } => {
  const { index } = table
  const condition = query?.condition
  const byQuery: RowFilter = condition === undefined ? () => true : filterOf(table, condition)
  const all = { low: 0, high: index?.max ?? 0 }
  const span = index === undefined ? all : spanOf(condition, index.field, all)
  if (least === undefined || index === undefined) return { filter: byQuery, span }
  const { field } = index
  return {
    filter: (row, key) => Number(row[field]) >= least && byQuery(row, key),
    span: { low: Math.max(span.low, least), high: span.high }
  }
}

/** The row of a key, if the filter accepts it. */
const readOne = (
  service: Service,
  table: TableSchema,
  filter: RowFilter,
  key: string
): Effect.Effect<ReadonlyArray<RowEntry>, HandlerFailure> =>
  Effect.map(service.records.get(table.name, key), (value) => {
    const row = value === undefined ? undefined : table.parse(value)
    return row !== undefined && filter(row, key) ? [{ key, row }] : []
  })

/** Reads the page of a table that a request names. Fails with 400 or 422. */
export const listRows = Effect.fnUntraced(function*(
  service: Service,
  call: Call,
  table: TableSchema,
  path: string,
  restriction: RowRestriction = {}
): Effect.fn.Return<RowListing, HandlerFailure> {
  const request = yield* readListingRequest(service, call, table)
  const { fields, limit, order, position, query } = request
  const { filter, span } = filterAndSpan(table, query?.query, restriction)
  const listing = (entries: ReadonlyArray<RowEntry>, links: RowListing["links"]): RowListing => ({
    entries,
    fields: fields.length > 0 ? fields : query?.query.fields,
    query,
    links
  })
  const { key } = restriction
  const earlierRows = position?.count ?? 0
  const rowsLeft = (query?.query.limit ?? Infinity) - earlierRows
  if (key !== undefined) {
    const entries = position === undefined ? yield* readOne(service, table, filter, key) : []
    return listing(entries, [])
  }
  if (rowsLeft <= 0) return listing([], [])
  const scan = runQuery(
    service.records,
    {
      table,
      filter,
      comparisons: comparisonsOf(query?.query.condition),
      span,
      order,
      limit: Math.min(limit, rowsLeft),
      after: position?.cursor
    },
    service.rowCaches.of(table)
  )
  // Only the scan of a stored query takes long.
  const page = yield* (query === undefined
    ? scan
    : inPlace(service.rowScans, call.request, scan))
  if (page._tag === "TooMany") {
    const detail = `the query would sort more than ${sortedRowsMax} ${table.name} by ` +
      `${order.by}: narrow the query, or order by ${table.index?.field ?? table.key}`
    return yield* httpError("unprocessable", detail)
  }
  const { entries, next } = page
  if (next === undefined || entries.length >= rowsLeft) return listing(entries, [])
  const after = encodeCursor({ count: earlierRows + entries.length, cursor: next })
  return listing(entries, [{
    rel: "next",
    href: nextUri(service, path, request, after),
    title: "Next page"
  }])
})
