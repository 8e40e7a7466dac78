/** Rows that are held in memory: pages from them, against looking at every row of the store. */
import { Effect } from "effect"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { filterOf, spanOf } from "../../http/query-engine/condition.ts"
import { type HeldBounds, Parts, RowCache } from "../../http/query-engine/row-cache.ts"
import { customersTable } from "../../http/resources/customers/customer-table.ts"
import type { RecordsApi } from "../../runtime/index.ts"
import { makeMemoryRecords } from "../../runtime/memory/records.ts"
import type { Watcher } from "../../runtime/ports/records.ts"
import { agedFrom, all, bounds, columns, counted, everything, filled, generous, person, put, remove,
  run, walk, world } from "./held-world.ts"
import { condition, naive, order, people, type Person } from "./naive.ts"

const heldBounds: fc.Arbitrary<HeldBounds> = fc.record({
  blockRows: fc.integer({ min: 1, max: 6 }),
  fillPauseMs: fc.constant(1),
  fillRows: fc.integer({ min: 5, max: 30 }),
  heldBytesMax: fc.constantFrom(0, 1_500, 6_000, 1e9),
  heldLoadsMax: fc.integer({ min: 0, max: 3 })
})

describe("pages of rows that are held", () => {
  it("are those of the store, before they are held and after, through any changes", async () => {
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
        heldBounds,
        places,
        fc.array(change, { maxLength: 4 }),
        async (rows, wanted, by, room, { isFilledFirst, limit, start, ...looks }, changes) => {
          const records = makeMemoryRecords()
          const held = new RowCache(records, customersTable, columns, room)
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
            const found = await walk(records, asked, held, { ...bounds, ...looks }, cursor)
            const expected = naive([...known.values()], wanted, by).filter((id) =>
              !isFrom || (by.descending ? id < start : id > start)
            )
            expect(found.map(({ id }) => id)).toEqual(expected)
            expect(found).toEqual(expected.map((id) => known.get(id)))
          }
          for (const one of rows) await set(one)
          if (isFilledFirst) await filled(records, held)
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
          await filled(records, held)
          await compare()
        }
      ),
      { numRuns: 100 }
    )
  })

  it("are all held when a part has as many rows as were asked for", () => {
    const parts = new Parts(columns, 2)
    const entries = [1, 2, 3, 4].map(person).map(({ id, row }) => ({ key: id, row }))
    const take = (limit: number, isEnd: boolean) => {
      const next = parts.run(undefined, false, limit)
      if (next !== undefined) parts.take(next, entries.slice(0, limit), isEnd)
    }
    take(4, true)
    expect(parts.isWhole).toBe(true)
    parts.changed(entries[1]?.key)
    expect(parts.isWhole).toBe(false)
    take(2, false)
    expect(parts.isWhole).toBe(true)
  })

  it("ask nothing of the store once they are held", async () => {
    const { api, held, reads } = await world(100)
    const asked = { ...agedFrom(50), limit: 9 }
    const found = await walk(api, { ...asked, order: { by: "id", descending: true } }, held)
    expect(found.map(({ id }) => id)).toEqual(
      Array.from({ length: 40 }, (_, at) => person(89 - at).id)
    )
    await walk(api, { ...everything, order: { by: "name", descending: false } }, held)
    expect(reads.count).toBe(0)
  })

  it("show a change that was written, and read that part again alone", async () => {
    const { api, held, reads, records } = await world(100)
    const { bytes } = held
    await run(put(records, person(40)))
    await walk(api, everything, held)
    expect([held.bytes, reads.count]).toEqual([bytes, 1])
    reads.count = 0
    await run(put(records, person(40, 149)))
    await run(remove(records, person(41).id))
    await run(put(records, person(100, 148)))
    const asked = agedFrom(120)
    expect(await walk(api, asked, held)).toEqual([person(40, 149), person(100, 148)])
    expect(reads.count).toBe(2)
    expect(await walk(api, everything, held)).toHaveLength(100)
    expect(reads.count).toBe(2)
  })

  it("take nothing in that changed while it was read", async () => {
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
    const held = new RowCache(racing, customersTable, columns, generous)
    await filled(racing, held)
    expect(await walk(racing, agedFrom(140), held)).toEqual([person(12, 149)])
    // In two parts that are read together.
    await run(put(records, person(5)))
    await run(put(records, person(9)))
    late = person(8, 148)
    await walk(racing, agedFrom(140), held)
    expect(await walk(racing, agedFrom(140), held)).toEqual([person(8, 148), person(12, 149)])
  })

  it("come from the store while it may show a change to some, until all see it", async () => {
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
    const held = new RowCache(api, customersTable, columns, generous)
    await filled(api, held)
    const asked = agedFrom(140)
    const { id } = person(12)
    for (const { changing } of watchers) changing(id)
    expect(await walk(api, asked, held)).toEqual([])
    await run(put(records, person(12, 149)))
    expect(await walk(api, asked, held)).toEqual([person(12, 149)])
    await run(put(records, person(12, 148)))
    expect(await walk(api, asked, held)).toEqual([person(12, 148)])
    for (const { changed } of watchers) changed(id)
    await filled(api, held)
    reads.count = 0
    expect(await walk(api, asked, held)).toEqual([person(12, 148)])
    expect(reads.count).toBe(0)
  })

  it("are not used while this node may have missed a change", async () => {
    const records = makeMemoryRecords()
    let isCurrent = true
    const behind: RecordsApi = {
      ...records,
      watch: () => {},
      isCurrent: Effect.sync(() => isCurrent)
    }
    for (let n = 0; n < 20; n++) await run(put(records, person(n)))
    const held = new RowCache(behind, customersTable, columns, generous)
    await filled(behind, held)
    await run(put(records, person(7, 149)))
    isCurrent = false
    expect(await walk(behind, agedFrom(140), held)).toEqual([person(7, 149)])
    const other = new RowCache(behind, customersTable, columns, generous)
    expect(await walk(behind, everything, other)).toHaveLength(20)
    expect(other.isFull).toBe(false)
  })

  it("are forgotten where anything may have changed", async () => {
    const records = makeMemoryRecords()
    let watching: Watcher | undefined
    const watched: RecordsApi = {
      ...records,
      watch: (table, watcher) => {
        watching = watcher
        records.watch(table, watcher)
      }
    }
    const held = new RowCache(watched, customersTable, columns, generous)
    for (let n = 0; n < 20; n++) await run(put(records, person(n)))
    await filled(watched, held)
    watching?.changed(undefined)
    expect(held.isFull).toBe(false)
    expect(await walk(watched, everything, held)).toHaveLength(20)
  })

  it("stay within their room, and the rest comes from the store", async () => {
    const { api, held, reads } = await world(100, { ...generous, heldBytesMax: 2_000 })
    expect(await walk(api, { ...everything, limit: 7 }, held)).toHaveLength(100)
    expect(reads.count).toBeGreaterThan(0)
    expect(held.bytes).toBeGreaterThan(2_000)
    expect(held.bytes).toBeLessThan(2_000 + 3 * 600)
  })

  it("come from the store where a row cannot be packed", async () => {
    const records = makeMemoryRecords()
    await run(put(records, person(1)))
    const odd = { id: "c0002", row: { name: "a", age: 3, shoe: "44" } }
    await run(put(records, odd))
    const held = new RowCache(records, customersTable, columns, generous)
    await filled(records, held)
    expect(await walk(records, everything, held)).toEqual([person(1), odd])
  })
})
