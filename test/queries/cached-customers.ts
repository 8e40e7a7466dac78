/** Customers in memory and a cache of their rows, for the tests of row caches. */
import { Effect } from "effect"
import { expect } from "vitest"
import { type Cursor, type QueryLimits, type RowRequest,
  runQuery } from "../../http/query-engine/query-run.ts"
import { columnsOf } from "../../http/query-engine/row-block.ts"
import { RowCache, type RowCacheLimits } from "../../http/query-engine/row-cache.ts"
import { customerChanges, customerRemoval,
  customersTable } from "../../http/resources/customers/customer-table.ts"
import type { RecordsApi } from "../../runtime/index.ts"
import { makeMemoryRecords } from "../../runtime/memory/records.ts"
import type { Person } from "./naive.ts"

export const run = Effect.runPromise
export const all = { low: 0, high: customersTable.index?.max ?? 0 }
export const columns = columnsOf(customersTable) ?? { index: "", names: [], texts: 0 }
export const generous: RowCacheLimits = {
  blockRows: 4,
  fillPauseMs: 1,
  fillRows: 10,
  rowCacheBytesMax: 1e9,
  rowCacheLoadsMax: 2
}
export const bounds: QueryLimits = {
  scannedRowsMax: 40,
  sortedRowsMax: 1_000,
  chunkRows: 7,
  probeRows: 5
}

export const put = (records: RecordsApi, { id, row }: Person) =>
  Effect.flatMap(
    records.get(customersTable.name, id),
    (before) => records.write(customerChanges(id, JSON.stringify(row), before))
  )

export const remove = (records: RecordsApi, id: string) =>
  Effect.flatMap(
    records.get(customersTable.name, id),
    (before) => before === undefined ? Effect.void : records.write(customerRemoval(id, before))
  )

export type Query = Omit<RowRequest, "after">

export const everything: Query = {
  table: customersTable,
  filter: () => true,
  span: all,
  order: { by: "id", descending: false },
  limit: 1_000
}

/** A query for customers of this age or older. */
export const agedFrom = (low: number): Query => ({
  ...everything,
  filter: ({ age }) => Number(age) >= low,
  span: { low, high: 150 }
})

export const walk = async (
  records: RecordsApi,
  asked: Query,
  cache: RowCache,
  by = bounds,
  start?: Cursor
) => {
  const rows: Array<Person> = []
  let after = start
  for (let pages = 0; pages < 500; pages++) {
    const page = await run(runQuery(records, { ...asked, after }, cache, by))
    if (page._tag === "TooMany") throw new Error("too many")
    expect(page.entries.length).toBeLessThanOrEqual(asked.limit)
    rows.push(...page.entries.map(({ key, row }) => ({ id: key, row })))
    after = page.next
    if (after === undefined) return rows
  }
  throw new Error("the pages do not end")
}

export const filled = async (records: RecordsApi, cache: RowCache): Promise<void> => {
  while (!cache.isFull) {
    await walk(records, everything, cache)
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
}

/** Counts the reads of records. */
export const counted = (records: RecordsApi) => {
  const reads = { count: 0 }
  const counting =
    <A extends ReadonlyArray<unknown>, B>(read: (...parameters: A) => B) => (...parameters: A) => {
      reads.count++
      return read(...parameters)
    }
  const { getMany, keys, range } = records
  const api: RecordsApi = {
    ...records,
    getMany: counting(getMany),
    keys: counting(keys),
    range: counting(range)
  }
  return { api, reads }
}

export const person = (n: number, age = n % 90): Person => ({
  id: `c${String(n).padStart(4, "0")}`,
  row: { name: `Somebody ${n}`, age, city: `City ${n % 7}` }
})

export const world = async (count: number, by: RowCacheLimits = generous) => {
  const records = makeMemoryRecords()
  for (let n = 0; n < count; n++) await run(put(records, person(n)))
  const { api, reads } = counted(records)
  const cache = new RowCache(api, customersTable, columns, by)
  await filled(api, cache)
  reads.count = 0
  return { records, api, reads, cache }
}
