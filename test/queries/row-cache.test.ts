/** Pages of cached rows, compared with a scan of every row of the store. */
import { Effect } from "effect"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { filterOf, spanOf } from "../../http/query-engine/condition.ts"
import { CachedRanges, RowCache, type RowCacheLimits } from "../../http/query-engine/row-cache.ts"
import { customersTable } from "../../http/resources/customers/customer-table.ts"
import type { RecordsApi } from "../../runtime/index.ts"
import { makeMemoryRecords } from "../../runtime/memory/records.ts"
import type { Watcher } from "../../runtime/ports/records.ts"
import { agedFrom, all, bounds, columns, counted, everything, filled, generous, person, put, remove,
  run, walk, world } from "./cached-customers.ts"
import { condition, naive, order, people, type Person } from "./naive.ts"

const cacheLimits: fc.Arbitrary<RowCacheLimits> = fc.record({
  blockRows: fc.integer({ min: 1, max: 6 }),
  fillPauseMs: fc.constant(1),
  fillRows: fc.integer({ min: 5, max: 30 }),
  rowCacheBytesMax: fc.constantFrom(0, 1_500, 6_000, 1e9),
  rowCacheLoadsMax: fc.integer({ min: 0, max: 3 })
})

describe("pages of cached rows", () => {
  it("are those of the store, before and after the cache is filled, after any change", async () => {
    const change = fc.oneof(
      fc.record({ put: people.filter(({ length }) => length > 0) }),
      fc.record({ remove: fc.nat() })
    )
    const places = fc.record({
      limit: fc.integer({ min: 1, max: 30 }),
      scannedRowsMax: fc.integer({ min: 1, max: 40 }),
      probeRows: fc.constantFrom(0, 1, 5),
      isFilledFirst: fc.boolean(),
      // Cursors outlive their rows.
      start: fc.option(fc.constantFrom("a", "a.", "b", "bb", "Z", "0-"), { nil: undefined })
    })
    await fc.assert(
      fc.asyncProperty(
        people,
        condition,
        order,
        cacheLimits,
        places,
        fc.array(change, { maxLength: 4 }),
        async (rows, wanted, by, room, { isFilledFirst, limit, start, ...looks }, changes) => {
          const records = makeMemoryRecords()
          const cache = new RowCache(records, customersTable, columns, room)
          const known = new Map<string, Person>()
          const set = async (one: Person) => {
            await run(put(records, one))
            known.set(one.id, one)
          }
          const drop = async (id: string) => {
            await run(remove(records, id))
            known.delete(id)
          }
          const filter = filterOf(customersTable, wanted)
          const asked = {
            ...everything,
            filter,
            span: spanOf(wanted, "age", all),
            order: by,
            limit
          }
          const compare = async () => {
            const isFrom = start !== undefined && by.by === "id"
            const cursor = isFrom ? { key: start } : undefined
            const found = await walk(records, asked, cache, { ...bounds, ...looks }, cursor)
            const expected = naive([...known.values()], wanted, by).filter((id) =>
              !isFrom || (by.descending ? id < start : id > start)
            )
            expect(found.map(({ id }) => id)).toEqual(expected)
            expect(found).toEqual(expected.map((id) => known.get(id)))
          }
          for (const one of rows) await set(one)
          if (isFilledFirst) await filled(records, cache)
          await compare()
          for (const one of changes) {
            if ("put" in one) { for (const each of one.put) await set(each) }
            else {
              const ids = [...known.keys()]
              const id = ids[one.remove % Math.max(1, ids.length)]
              if (id !== undefined) await drop(id)
            }
            await compare()
          }
          await filled(records, cache)
          await compare()
        }
      ),
      { numRuns: 100 }
    )
  })

  it("are all cached when a range has as many rows as were read", () => {
    const ranges = new CachedRanges(columns, 2)
    const entries = [1, 2, 3, 4].map(person).map(({ id, row }) => ({ key: id, row }))
    const insert = (limit: number, isEnd: boolean) => {
      const next = ranges.missingRun(undefined, false, limit)
      if (next !== undefined) ranges.insert(next, entries.slice(0, limit), isEnd)
    }
    insert(4, true)
    expect(ranges.isComplete).toBe(true)
    ranges.invalidate(entries[1]?.key)
    expect(ranges.isComplete).toBe(false)
    insert(2, false)
    expect(ranges.isComplete).toBe(true)
  })

  it("need no read of the store once they are cached", async () => {
    const { api, cache, reads } = await world(100)
    const asked = { ...agedFrom(50), limit: 9 }
    const found = await walk(api, { ...asked, order: { by: "id", descending: true } }, cache)
    expect(found.map(({ id }) => id)).toEqual(
      Array.from({ length: 40 }, (_, at) => person(89 - at).id)
    )
    await walk(api, { ...everything, order: { by: "name", descending: false } }, cache)
    expect(reads.count).toBe(0)
  })

  it("show a written change, and read only its range again", async () => {
    const { api, cache, reads, records } = await world(100)
    const { bytes } = cache
    await run(put(records, person(40)))
    await walk(api, everything, cache)
    expect([cache.bytes, reads.count]).toEqual([bytes, 1])
    reads.count = 0
    await run(put(records, person(40, 149)))
    await run(remove(records, person(41).id))
    await run(put(records, person(100, 148)))
    const asked = agedFrom(120)
    expect(await walk(api, asked, cache)).toEqual([person(40, 149), person(100, 148)])
    expect(reads.count).toBe(2)
    expect(await walk(api, everything, cache)).toHaveLength(100)
    expect(reads.count).toBe(2)
  })

  it("are not cached when they changed during the read", async () => {
    const { records } = await world(30)
    let late: Person | undefined = person(12, 149)
    const racing: RecordsApi = {
      ...records,
      range: (table, range) =>
        Effect.tap(records.range(table, range), () => {
          const now = late
          late = undefined
          return now === undefined ? Effect.void : put(records, now)
        })
    }
    const cache = new RowCache(racing, customersTable, columns, generous)
    await filled(racing, cache)
    expect(await walk(racing, agedFrom(140), cache)).toEqual([person(12, 149)])
    // The rows are in two ranges, which one read loads.
    await run(put(records, person(5)))
    await run(put(records, person(9)))
    late = person(8, 148)
    await walk(racing, agedFrom(140), cache)
    expect(await walk(racing, agedFrom(140), cache)).toEqual([person(8, 148), person(12, 149)])
  })

  it("come from the store while a change is in flight", async () => {
    const records = makeMemoryRecords()
    const watchers: Array<Watcher> = []
    const watched: RecordsApi = {
      ...records,
      watch: (_, watcher) => {
        watchers.push(watcher)
      }
    }
    for (let n = 0; n < 30; n++) await run(put(records, person(n)))
    const { api, reads } = counted(watched)
    const cache = new RowCache(api, customersTable, columns, generous)
    await filled(api, cache)
    const asked = agedFrom(140)
    const { id } = person(12)
    for (const { changing } of watchers) changing(id)
    expect(await walk(api, asked, cache)).toEqual([])
    await run(put(records, person(12, 149)))
    expect(await walk(api, asked, cache)).toEqual([person(12, 149)])
    await run(put(records, person(12, 148)))
    expect(await walk(api, asked, cache)).toEqual([person(12, 148)])
    for (const { changed } of watchers) changed(id)
    await filled(api, cache)
    reads.count = 0
    expect(await walk(api, asked, cache)).toEqual([person(12, 148)])
    expect(reads.count).toBe(0)
  })

  it("are not used while this node may have missed changes", async () => {
    const records = makeMemoryRecords()
    let isCurrent = true
    const behind: RecordsApi = {
      ...records,
      watch: () => {},
      isCurrent: Effect.sync(() => isCurrent)
    }
    for (let n = 0; n < 20; n++) await run(put(records, person(n)))
    const cache = new RowCache(behind, customersTable, columns, generous)
    await filled(behind, cache)
    await run(put(records, person(7, 149)))
    isCurrent = false
    expect(await walk(behind, agedFrom(140), cache)).toEqual([person(7, 149)])
    const other = new RowCache(behind, customersTable, columns, generous)
    expect(await walk(behind, everything, other)).toHaveLength(20)
    expect(other.isFull).toBe(false)
  })

  it("are dropped when any row may have changed", async () => {
    const records = makeMemoryRecords()
    let watching: Watcher | undefined
    const watched: RecordsApi = {
      ...records,
      watch: (table, watcher) => {
        watching = watcher
        records.watch(table, watcher)
      }
    }
    const cache = new RowCache(watched, customersTable, columns, generous)
    for (let n = 0; n < 20; n++) await run(put(records, person(n)))
    await filled(watched, cache)
    watching?.changed(undefined)
    expect(cache.isFull).toBe(false)
    expect(await walk(watched, everything, cache)).toHaveLength(20)
  })

  it("stay within their limit, and the rest comes from the store", async () => {
    const { api, cache, reads } = await world(100, { ...generous, rowCacheBytesMax: 2_000 })
    expect(await walk(api, { ...everything, limit: 7 }, cache)).toHaveLength(100)
    expect(reads.count).toBeGreaterThan(0)
    expect(cache.bytes).toBeGreaterThan(2_000)
    expect(cache.bytes).toBeLessThan(2_000 + 3 * 600)
  })

  it("come from the store where a row cannot be packed", async () => {
    const records = makeMemoryRecords()
    await run(put(records, person(1)))
    const odd = { id: "c0002", row: { name: 44, age: 3 } }
    await run(put(records, odd))
    const cache = new RowCache(records, customersTable, columns, generous)
    await filled(records, cache)
    expect(await walk(records, everything, cache)).toEqual([person(1), odd])
  })
})
