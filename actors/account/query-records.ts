/** Where queries are stored: they are records, and no actors. */
import type { RecordChange } from "../../runtime/index.ts"

/** `<id>` of each query. */
export const queriesTable = "queries"

/** `<account>/<id>` of the queries of each account. */
export const queryOwnersTable = "queries-by-owner"

/** The ids of removed queries, whose URIs answer 410. */
export const goneQueries = "queries-gone"

/** Removes a query of an account. */
export const ownedQueryRemoval = (owner: string, id: string): ReadonlyArray<RecordChange> => [
  { table: queriesTable, key: id, value: null },
  { table: goneQueries, key: id, value: "" },
  { table: queryOwnersTable, key: `${owner}/${id}`, value: null, markerExpires: true }
]
