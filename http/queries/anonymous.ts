/**
 * Queries that anybody may make without an account: they end by themselves, and one address has so
 * many at a time. Three tables, of which the last two are indexes by the time of the end:
 * `queries`, `queries-ending` (`<ms>/<id>`) and `queries-by-address` (`<hash>/<ms>/<id>`).
 */
import { Effect } from "effect"
import type { RecordChange } from "../../runtime/index.ts"
import { fail, type HandlerFailure } from "../failures.ts"
import { secretHash } from "../secrets.ts"
import type { Service } from "../service.ts"
import { anonymousQueriesMax, endedQueriesPage, endedQueriesSweepMs } from "./limits.ts"
import { endOf, goneQueries, queriesTable, type StoredQuery } from "./store.ts"

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
  return yield* fail("too-many-requests", detail, [["Retry-After", String(waitSeconds)]])
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
