/**
 * Queries that anybody may make without an account: they end by themselves, and one address has so
 * many at a time. Three tables, of which the last two are indexes by the time of the end:
 * `queries`, `queries-ending` (`<ms>/<id>`) and `queries-by-address` (`<hash>/<ms>/<id>`).
 */
import { Effect } from "effect"
import type { RecordChange } from "../../../runtime/index.ts"
import { secretHash } from "../../auth/credentials/index.ts"
import { anonymousQueriesMax, anonymousQueryKeptMs, endedQueriesPage,
  endedQueriesSweepMs } from "../../limits.ts"
import { type HandlerFailure, httpError, localPath, type Service } from "../../pipeline/index.ts"
import type { RowQuery, TableSchema } from "../../query-engine/index.ts"

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
    .exec(localPath(service, href) ?? "")?.[1]
  return id !== undefined && isQueryId(id) ? id : undefined
}

/** The query that a parameter names: 400 for what is no URI of one, 422 for one that is not fit. */
export const readNamedQuery = Effect.fnUntraced(function*(
  service: Service,
  href: string,
  table: TableSchema
): Effect.fn.Return<RowQuery, HandlerFailure> {
  const id = idIn(service, href)
  if (id === undefined) {
    return yield* httpError("malformed", "query must be the URI of a query of this service")
  }
  const value = yield* service.records.get(queriesTable, id)
  const stored = value === undefined ? undefined : parseStored(value)
  if (stored === undefined || isOver(stored, service.nowMs())) {
    return yield* httpError("unprocessable", "there is no such query")
  }
  const { query } = stored
  return query.on === table.name
    ? query
    : yield* httpError("unprocessable", `the query is on ${query.on}, not on ${table.name}`)
})

/* Queries as they are stored: the table `queries` by id, and those of each account. */

export const endingTable = "queries-ending"

export const addressesTable = "queries-by-address"

/** Digits of a time in a key, so that keys sort as times do. */
const timeDigits = 16

const timeText = (ms: number): string => String(ms).padStart(timeDigits, "0")

/** The address as it is kept, for as long as the query is. */
export const addressOf = (client: string): string => secretHash(client)

type Kept = Pick<Service, "nowMs" | "records">

/** What is written along with a query that ends, and what of that goes when it is removed. */
export const endingChanges = (id: string, stored: StoredQuery): ReadonlyArray<RecordChange> => {
  const endMs = endOf(stored)
  if (endMs === undefined) return []
  const { address = "" } = stored
  const key = `${timeText(endMs)}/${id}`
  return [
    { table: endingTable, key, value: address },
    { table: addressesTable, key: `${address}/${key}`, value: "" }
  ]
}

/** That it was removed is known until it would have ended. */
export const removalChanges = (id: string, stored: StoredQuery): ReadonlyArray<RecordChange> =>
  endingChanges(id, stored).filter(({ table }) => table === addressesTable).map((change) => ({
    ...change,
    value: null,
    fades: true
  }))

/** Fails with 429 while the address has as many queries as it may. */
export const mayMake = Effect.fnUntraced(function*(
  { nowMs, records }: Kept,
  client: string
): Effect.fn.Return<void, HandlerFailure> {
  const prefix = `${addressOf(client)}/`
  const after = `${prefix}${timeText(nowMs() + 1)}`
  const range = { prefix, after, limit: anonymousQueriesMax }
  const [keys = []] = yield* records.keys(addressesTable, [range])
  const [first] = keys
  if (keys.length < anonymousQueriesMax || first === undefined) return
  const endMs = Number(first.slice(prefix.length, prefix.length + timeDigits))
  const waitSeconds = Math.max(1, Math.ceil((endMs - nowMs()) / 1000))
  const detail = `this address has ${anonymousQueriesMax} queries without an account: ` +
    "remove some by their edit URIs, or sign in"
  return yield* httpError("too-many-requests", detail, [["Retry-After", String(waitSeconds)]])
})

/** Removes queries that are over, and what is known of those that were removed before. */
export const removeEnded = Effect.fnUntraced(function*(
  { nowMs, records }: Kept
): Effect.fn.Return<void, HandlerFailure> {
  for (;;) {
    const entries = yield* records.range(endingTable, { limit: endedQueriesPage })
    const ended = entries.filter(({ key }) => Number(key.slice(0, timeDigits)) <= nowMs())
    yield* records.write(ended.flatMap(({ key, value: address }) => {
      const id = key.slice(timeDigits + 1)
      return [
        { table: queriesTable, key: id, value: null, fades: true },
        { table: goneQueries, key: id, value: null, fades: true },
        { table: addressesTable, key: `${address}/${key}`, value: null, fades: true },
        { table: endingTable, key, value: null, fades: true }
      ]
    }))
    if (ended.length < endedQueriesPage) return
  }
})

/** Removes them for as long as the service runs. */
export const watchQueries = (service: Kept): Effect.Effect<never> =>
  Effect.forever(
    Effect.ignore(removeEnded(service)).pipe(Effect.andThen(Effect.sleep(endedQueriesSweepMs)))
  )
