/**
 * Queries as records. A query that has no owner expires. Each client network has a bounded number
 * of them, and their bytes count for its day. The tables, and their keys:
 *
 * - `queries`: `<id>`
 * - `queries-by-owner`: `<account>/<id>`
 * - `queries-ending` and `queries-by-address`, for queries without an owner, by the time of their
 *   expiry: `<ms>/<id>` and `<hash of the network>/<ms>/<id>`
 * - `queries-gone`: the ids of removed queries, whose URIs answer 410
 */
import { Effect } from "effect"
import { contentOverheadBytes, goneQueries, queriesTable, queryOwnersTable, sha256,
  timeInKey } from "../../../actors/index.ts"
import type { RecordChange } from "../../../runtime/index.ts"
import { isRandomId } from "../../auth/credentials/index.ts"
import { anonymousQueriesMax, anonymousQueryRetentionMs, attemptsMax } from "../../limits.ts"
import { type Call, type HandlerFailure, httpError, localPath,
  type Service } from "../../pipeline/index.ts"
import type { RowQuery, TableSchema } from "../../query-engine/index.ts"
import { beginRequest } from "../../request-record.ts"
import { nameInKey, removeExpired, sweep, timeOfKey } from "../../record-expiry.ts"
import { chargeNetwork } from "../content/index.ts"

export const expiryTable = "queries-ending"

export const addressesTable = "queries-by-address"

export const collectionPath = "/queries"

export const queryPath = (id: string): string => `${collectionPath}/${id}`

/** A query, its creator, and the hash of the secret in its edit URI. */
export interface StoredQuery {
  readonly query: RowQuery
  /** The name of the account that created it. */
  readonly owner?: string
  /** Without an owner: a hash of the client's network, in older records of its address. */
  readonly address?: string
  readonly editHash: string
  /** ms since the epoch. */
  readonly createdMs: number
}

// Only this service writes these records.
export const parseQuery = (value: string): StoredQuery => JSON.parse(value) as StoredQuery

/** The stored form of a client's network. */
export const networkHash = (network: string): string => sha256(network)

/** When a query expires, ms since the epoch; undefined for one with an owner. */
export const expiryMs = ({ createdMs, owner }: StoredQuery): number | undefined =>
  owner === undefined ? createdMs + anonymousQueryRetentionMs : undefined

/** Whether a query has expired, though its record may still exist. */
export const isExpired = (stored: StoredQuery, nowMs: number): boolean =>
  (expiryMs(stored) ?? Infinity) <= nowMs

type QueryRecords = Pick<Service, "nowMs" | "records">

/** The change of the index entry of a query by its owner, or by its network. */
const indexChange = (id: string, stored: StoredQuery, value: "" | null): RecordChange => {
  const { address = "", owner } = stored
  const entry = owner === undefined
    ? { table: addressesTable, key: `${address}/${timeInKey(expiryMs(stored) ?? 0)}/${id}` }
    : { table: queryOwnersTable, key: `${owner}/${id}` }
  return { ...entry, value, ...value === null ? { markerExpires: true } : {} }
}

/** Creates a query. */
export const creationChanges = (id: string, stored: StoredQuery): ReadonlyArray<RecordChange> => {
  const atMs = expiryMs(stored)
  const { address = "" } = stored
  return [
    { table: queriesTable, key: id, value: JSON.stringify(stored) },
    indexChange(id, stored, ""),
    ...atMs === undefined
      ? []
      : [{ table: expiryTable, key: `${timeInKey(atMs)}/${id}`, value: address }]
  ]
}

/** Removes a query. The expiry entry remains, and with it the record in `queries-gone`. */
export const removalChanges = (id: string, before: string): ReadonlyArray<RecordChange> => [
  { table: queriesTable, key: id, value: null },
  { table: goneQueries, key: id, value: "" },
  indexChange(id, parseQuery(before), null)
]

/** The id in a query's URI, absolute or a path, with or without the edit secret. */
const idIn = (service: Service, href: string): string | undefined => {
  const path = href.startsWith("/") ? href : localPath(service, href)
  const id = /^\/queries\/([A-Za-z0-9_-]+)(?:~[A-Za-z0-9_-]*)?$/
    .exec(path ?? "")?.[1]
  return id !== undefined && isRandomId(id) ? id : undefined
}

/** The query at a URI; fails with 400 for another URI, and 422 for a query that does not fit. */
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
  const stored = value === undefined ? undefined : parseQuery(value)
  if (stored === undefined || isExpired(stored, service.nowMs())) {
    return yield* httpError("unprocessable", "the query does not exist or has expired")
  }
  const { query } = stored
  return query.on === table.name
    ? query
    : yield* httpError("unprocessable", `the query is on ${query.on}, not on ${table.name}`)
})

/** Fails with 429 when the network has its maximum number of queries without an owner. */
export const assertNetworkQuota = Effect.fnUntraced(function*(
  { nowMs, records }: QueryRecords,
  hash: string
): Effect.fn.Return<void, HandlerFailure> {
  const prefix = `${hash}/`
  const after = `${prefix}${timeInKey(nowMs() + 1)}`
  const range = { prefix, after, limit: anonymousQueriesMax }
  const [keys = []] = yield* records.keys(addressesTable, [range])
  const [first] = keys
  if (keys.length < anonymousQueriesMax || first === undefined) return
  const atMs = timeOfKey(first.slice(prefix.length))
  const waitSeconds = Math.max(1, Math.ceil((atMs - nowMs()) / 1000))
  const detail = `this network has ${anonymousQueriesMax} queries without an account: ` +
    `remove some by their edit URIs, sign in, or try again at ${new Date(atMs).toISOString()}`
  return yield* httpError("too-many-requests", detail, [["Retry-After", String(waitSeconds)]])
})

/**
 * Counts what a query without an owner stores, beyond the record before, for the day of the
 * client's network; fails with 507. The count of an earlier record stays when it shrinks.
 */
export const chargeQuery = (
  service: Service,
  call: Call,
  value: string,
  before?: string
): Effect.Effect<void, HandlerFailure> => {
  if (parseQuery(value).owner !== undefined) return Effect.void
  const bytes = Buffer.byteLength(value) -
    (before === undefined ? -contentOverheadBytes : Buffer.byteLength(before))
  return bytes > 0 ? chargeNetwork(service, call, bytes) : Effect.void
}

const usedBefore = httpError(
  "conflict",
  "this Idempotency-Key has created a query before, and has ended since: use a new key"
)

/**
 * Creates the query that `make` returns for the time of its creation, and returns it. A repetition
 * of a request that has created it changes nothing. Fails with 429 or 507, and with 409 if an ended
 * key had the same id.
 */
export const createQuery = Effect.fnUntraced(function*(
  service: Service,
  call: Call,
  id: string,
  make: (createdMs: number) => StoredQuery
): Effect.fn.Return<StoredQuery, HandlerFailure> {
  const { records } = service
  let isCharged = false
  for (let attempt = 0; attempt < attemptsMax; attempt++) {
    // Read before the record of the request: another attempt writes both at once.
    const known = [yield* records.get(queriesTable, id), yield* records.get(goneQueries, id)]
    const { atMs, changes, earlier, expected } = yield* beginRequest(service, call)
    const stored = make(atMs)
    // Somebody may have changed or removed it since.
    if (earlier !== undefined) return stored
    if (known.some((value) => value !== undefined)) return yield* usedBefore
    if (stored.address !== undefined) yield* assertNetworkQuota(service, stored.address)
    if (!isCharged) yield* chargeQuery(service, call, JSON.stringify(stored))
    isCharged = true
    const isWritten = yield* records.writeIf(
      [{ table: queriesTable, key: id, value: null }, ...expected],
      [...creationChanges(id, stored), ...changes]
    )
    if (isWritten) return stored
  }
  return yield* httpError("overloaded")
})

/** Removes all records of expired queries. */
export const removeExpiredQueries = (
  service: QueryRecords
): Effect.Effect<void, HandlerFailure> =>
  removeExpired(
    service,
    expiryTable,
    (expired) =>
      service.records.write(expired.flatMap(({ key, value: address }) => {
        const id = nameInKey(key)
        return [
          { table: queriesTable, key: id, value: null, markerExpires: true },
          { table: goneQueries, key: id, value: null, markerExpires: true },
          { table: addressesTable, key: `${address}/${key}`, value: null, markerExpires: true },
          { table: expiryTable, key, value: null, markerExpires: true }
        ]
      }))
  )

/** Removes expired queries at intervals, for as long as the service runs. */
export const sweepQueries = (service: QueryRecords): Effect.Effect<never> =>
  sweep(removeExpiredQueries(service))
