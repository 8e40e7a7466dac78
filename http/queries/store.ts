/** Queries as they are stored: the table `queries` by id, and those of each account. */
import { Effect } from "effect"
import type { RecordChange } from "../../runtime/index.ts"
import { fail, type HandlerFailure } from "../failures.ts"
import { ownPath, type Service } from "../service.ts"
import type { RowQuery } from "./condition.ts"
import type { TableSchema } from "./fields.ts"
import { anonymousQueryKeptMs } from "./limits.ts"

export const queriesTable = "queries"
export const goneQueries = "queries-gone"
/** `<owner>/<id>` of the queries of each account. */
export const ownersTable = "queries-by-owner"

export const collectionPath = "/queries"
export const queryPath = (id: string): string => `${collectionPath}/${id}`

/** A query, who made it, and what its edit URI proves. */
export interface StoredQuery {
  readonly query: RowQuery
  readonly owner?: string
  /** Of who made it without an account: a hash of the client's address. */
  readonly address?: string
  readonly editHash: string
  /** ms since the epoch. */
  readonly createdMs: number
}

/** Ids are chosen here: 128 bits and more in base64url. */
export const isQueryId = (text: string): boolean => /^[A-Za-z0-9_-]{16,64}$/.test(text)

// This service's own text.
export const parseStored = (value: string): StoredQuery => JSON.parse(value) as StoredQuery

/** When a query ends, ms since the epoch; undefined for one that has an owner. */
export const endOf = ({ createdMs, owner }: StoredQuery): number | undefined =>
  owner === undefined ? createdMs + anonymousQueryKeptMs : undefined

/** Whether it has ended, though it may still be there. */
export const isOver = (stored: StoredQuery, nowMs: number): boolean =>
  (endOf(stored) ?? Infinity) <= nowMs

export const storedChanges = (id: string, value: string): ReadonlyArray<RecordChange> => {
  const { owner } = parseStored(value)
  return [
    { table: queriesTable, key: id, value },
    ...owner === undefined ? [] : [{ table: ownersTable, key: `${owner}/${id}`, value: "" }]
  ]
}

export const storedRemoval = (id: string, before: string): ReadonlyArray<RecordChange> => {
  const { owner } = parseStored(before)
  return [
    { table: queriesTable, key: id, value: null },
    { table: goneQueries, key: id, value: "" },
    ...owner === undefined ? [] : [{ table: ownersTable, key: `${owner}/${id}`, value: null }]
  ]
}

/** The id in a query's URI, absolute or a path, with or without what lets it be changed. */
const idIn = (service: Service, href: string): string | undefined => {
  const id = /^\/queries\/([A-Za-z0-9_-]+)(?:~[A-Za-z0-9_-]*)?$/
    .exec(ownPath(service, href) ?? "")?.[1]
  return id !== undefined && isQueryId(id) ? id : undefined
}

/** The query that a parameter names: 400 for what is no URI of one, 422 for one that is not fit. */
export const queryAt = Effect.fnUntraced(function*(
  service: Service,
  href: string,
  table: TableSchema
): Effect.fn.Return<RowQuery, HandlerFailure> {
  const id = idIn(service, href)
  if (id === undefined) {
    return yield* fail("malformed", "query must be the URI of a query of this service")
  }
  const value = yield* service.records.get(queriesTable, id)
  const stored = value === undefined ? undefined : parseStored(value)
  if (stored === undefined || isOver(stored, service.nowMs())) {
    return yield* fail("unprocessable", "there is no such query")
  }
  const { query } = stored
  return query.on === table.name
    ? query
    : yield* fail("unprocessable", `the query is on ${query.on}, not on ${table.name}`)
})
