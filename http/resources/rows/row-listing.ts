/** Rows as the address asks for them: C1 without a symbol, and C2 (protocol §3). */
import { Effect } from "effect"
import type { PageLink } from "../../formats/html/index.ts"
import { pageEntriesDefault, pageEntriesMax, sortedRowsMax } from "../../limits.ts"
import { absoluteUri, type Call, type HandlerFailure, type HttpError, httpError, readQuery,
  type Service } from "../../pipeline/index.ts"
import { fieldsIn, filterOf, type NumberRange, type Order, readPlace, type RowEntry, type RowFilter,
  type RowQuery, runQuery, spanOf, type TableSchema, writePlace } from "../../query-engine/index.ts"
import { queryAt } from "./query-store.ts"

/** A page of rows. */
export interface RowListing {
  readonly entries: ReadonlyArray<RowEntry>
  /** The fields to show; undefined for all. */
  readonly fields: ReadonlyArray<string> | undefined
  /** The query that was named, and its URI as it was given. */
  readonly query: { readonly href: string; readonly query: RowQuery } | undefined
  readonly links: ReadonlyArray<PageLink>
}

/** What an address asks beside what every listing takes. */
export interface Narrowed {
  /** The least value of the indexed field. */
  readonly least?: number
  /** The only row that is wanted. */
  readonly key?: string
}

const limitOf = (text: string | undefined): number | undefined => {
  if (text === undefined) return pageEntriesDefault
  return /^[1-9]\d{0,8}$/.test(text) && Number(text) <= pageEntriesMax ? Number(text) : undefined
}

/** The address of the next page: what was asked, and where to go on. */
const nextAddress = (
  service: Service,
  path: string,
  given: ReadonlyArray<readonly [string, string]>,
  limit: number,
  after: string
): string => {
  const kept = given.filter(([name]) => name !== "limit" && name !== "after")
  const all = [...kept, ["limit", String(limit)] as const, ["after", after] as const]
  const query = all.map(([name, value]) =>
    `${encodeURIComponent(name)}=${encodeURIComponent(value)}`
  )
  return `${absoluteUri(service, path)}?${query.join("&")}`
}

interface Wanted {
  readonly filter: RowFilter
  readonly span: NumberRange
}

const everything: RowFilter = () => true

const wantedOf = (table: TableSchema, query: RowQuery | undefined, { least }: Narrowed): Wanted => {
  const { index } = table
  const condition = query?.condition
  const byQuery = condition === undefined ? everything : filterOf(table, condition)
  const all = { low: 0, high: index?.max ?? 0 }
  const span = index === undefined ? all : spanOf(condition, index.field, all)
  if (least === undefined || index === undefined) return { filter: byQuery, span }
  const { field } = index
  return {
    filter: (row, key) => Number(row[field]) >= least && byQuery(row, key),
    span: { low: Math.max(span.low, least), high: span.high }
  }
}

/** Whether the one row that is wanted is there and fits. */
const oneRow = (
  service: Service,
  table: TableSchema,
  filter: RowFilter,
  key: string
): Effect.Effect<{ readonly entries: ReadonlyArray<RowEntry> }, HandlerFailure> =>
  Effect.map(service.records.get(table.name, key), (value) => {
    const row = value === undefined ? undefined : table.parse(value)
    return { entries: row !== undefined && filter(row, key) ? [{ key, row }] : [] }
  })

const badFields = (detail: string): HttpError => httpError("malformed", detail)

/** The page that a request asks of a table at `path`. Fails with 400 or 422. */
export const listRows = Effect.fnUntraced(function*(
  service: Service,
  call: Call,
  table: TableSchema,
  path: string,
  narrowed: Narrowed = {}
): Effect.fn.Return<RowListing, HandlerFailure> {
  const given = yield* readQuery(call)
  // A form that is sent empty says nothing.
  const limit = limitOf(given.get("limit") || undefined)
  if (limit === undefined) {
    return yield* badFields(`limit must be a whole number from 1 to ${pageEntriesMax}`)
  }
  const href = given.get("query")
  const query = href === undefined ? undefined : yield* queryAt(service, href, table)
  const asked = fieldsIn(table, given.all("return").join(" "))
  if (!asked.ok) return yield* badFields(asked.fault)
  const order: Order = query?.order ?? { by: table.key, descending: false }
  const text = given.get("after")
  const place = text === undefined ? undefined : readPlace(table, order, text)
  if (text !== undefined && place === undefined) {
    return yield* badFields("after is no cursor of this listing")
  }
  const givenRows = place?.given ?? 0
  const left = (query?.limit ?? Infinity) - givenRows
  const page = Math.min(limit, left)
  const after = place?.cursor
  const wanted = wantedOf(table, query, narrowed)
  const { key } = narrowed
  const ofOne = key === undefined || after !== undefined
    ? { entries: [] }
    : yield* oneRow(service, table, wanted.filter, key)
  const found = page <= 0 || key !== undefined
    ? { _tag: "Page" as const, ...ofOne, next: undefined }
    : yield* runQuery(
      service.records,
      { table, ...wanted, order, limit: page, after },
      service.rowCaches.of(table)
    )
  if (found._tag === "TooMany") {
    const detail = `more than ${sortedRowsMax} ${table.name} would have to be put in order of ` +
      `${order.by}: narrow the query, or order by ${table.index?.field ?? table.key}`
    return yield* httpError("unprocessable", detail)
  }
  const { entries, next } = found
  const rows = givenRows + entries.length
  const onwards = next === undefined || entries.length >= left
    ? undefined
    : writePlace({ given: rows, cursor: next })
  return {
    entries,
    fields: asked.value.length > 0 ? asked.value : query?.fields,
    query: query === undefined || href === undefined ? undefined : { href, query },
    links: onwards === undefined ? [] : [{
      rel: "next",
      href: nextAddress(service, path, given.entries(), limit, onwards),
      title: "Next page"
    }]
  }
})
