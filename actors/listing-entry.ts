/** The entry of a resource in a listing: two records, beside the actor of the resource. */
import { Effect } from "effect"
import type { RecordsApi, StorageFailure } from "../runtime/index.ts"

/** The tables of a listing. */
export interface ListingTables {
  /** `<owner>/<cursor>` of each resource, or `<cursor>` for resources without an owner. */
  readonly table: string
  /** The id of each resource: its key in the other table. */
  readonly keysTable: string
}

/** Removes the entry of a resource that has ended; it may be removed already. */
export const removeListingEntry = Effect.fnUntraced(function*(
  records: Pick<RecordsApi, "get" | "write">,
  { keysTable, table }: ListingTables,
  id: string
): Effect.fn.Return<void, StorageFailure> {
  const key = yield* records.get(keysTable, id)
  if (key === undefined) return
  yield* records.write([
    { table, key, value: null, markerExpires: true },
    { table: keysTable, key: id, value: null, markerExpires: true }
  ])
})
