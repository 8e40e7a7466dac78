/** Rows that are held in memory: pages from them, against looking at every row of the store. */
import { Effect } from "effect"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { customerChanges, customerRemoval, customers } from "../../http/customers/table.ts"
import { columnsOf } from "../../http/queries/block.ts"
import { filterOf, spanOf } from "../../http/queries/condition.ts"
import { type HeldBounds, HeldRows } from "../../http/queries/held.ts"
import { type Asked, type Bounds, type Cursor, runQuery } from "../../http/queries/run.ts"
import type { RecordsApi } from "../../runtime/index.ts"
import { makeMemoryRecords } from "../../runtime/ports/memory-records.ts"
import { condition, naive, order, people, type Person } from "./naive.ts"

const run = Effect.runPromise
const all = { low: 0, high: customers.index?.max ?? 0 }
const columns = columnsOf(customers) ?? { index: "", names: [], texts: 0 }
const generous: HeldBounds = {
  blockRows: 4,
  fillPauseMs: 1,
  fillRows: 10,
  heldBytesMax: 1e9,
  heldLoadsMax: 2
}
const bounds: Bounds = { scannedRowsMax: 40, sortedRowsMax: 1_000, chunkRows: 7, probeRows: 5 }

const put = (records: RecordsApi, { id, row }: Person) =>
  Effect.flatMap(
    records.get(customers.name, id),
    (before) => records.write(customerChanges(id, JSON.stringify(row), before))
  )

const remove = (records: RecordsApi, id: string) =>
  Effect.flatMap(
    records.get(customers.name, id),
    (before) => before === undefined ? Effect.void : records.write(customerRemoval(id, before))
  )

type Query = Omit<Asked, "after">

const everything: Query = {
  table: customers,
  filter: () => true,
  span: all,
  order: { by: "id", descending: false },
  limit: 1_000
}

const walk = async (records: RecordsApi, asked: Query, held: HeldRows, by = bounds) => {
  const rows: Array<Person> = []
  let after: Cursor | undefined
  for (let pages = 0; pages < 500; pages++) {
    const page = await run(runQuery(records, { ...asked, after }, held, by))
    if (page._tag === "TooMany") throw new Error("too many")
    expect(page.entries.length).toBeLessThanOrEqual(asked.limit)
    rows.push(...page.entries.map(({ key, row }) => ({ id: key, row })))
    after = page.next
    if (after === undefined) return rows
  }
  throw new Error("it has no end")
}

const filled = async (records: RecordsApi, held: HeldRows): Promise<void> => {
  while (!held.isFull) {
    await walk(records, everything, held)
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
}

/** The records, and how often they were read. */
const counted = (records: RecordsApi) => {
  const reads = { count: 0 }
  const counting =
    <A extends ReadonlyArray<unknown>, B>(read: (...given: A) => B) => (...given: A) => {
      reads.count++
      return read(...given)
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

const person = (n: number, age = n % 90): Person => ({
  id: `c${String(n).padStart(4, "0")}`,
  row: { name: `Somebody ${n}`, age, city: `City ${n % 7}` }
})

const world = async (count: number, by: HeldBounds = generous) => {
  const records = makeMemoryRecords()
  for (let n = 0; n < count; n++) await run(put(records, person(n)))
  const { api, reads } = counted(records)
  const held = new HeldRows(api, customers, columns, by)
  await filled(api, held)
  reads.count = 0
  return { records, api, reads, held }
}

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
      isFilledFirst: fc.boolean()
    })
    await fc.assert(
      fc.asyncProperty(
        people,
        condition,
        order,
        heldBounds,
        places,
        fc.array(change, { maxLength: 4 }),
        async (rows, wanted, by, room, { isFilledFirst, limit, ...looks }, changes) => {
          const records = makeMemoryRecords()
          const held = new HeldRows(records, customers, columns, room)
          const known = new Map<string, Person>()
          const set = async (one: Person) => {
            await run(put(records, one))
            known.set(one.id, one)
          }
          const drop = async (id: string) => {
            await run(remove(records, id))
            known.delete(id)
          }
          const filter = filterOf(customers, wanted)
          const asked = {
            ...everything,
            filter,
            span: spanOf(wanted, "age", all),
            order: by,
            limit
          }
          const compare = async () => {
            const found = await walk(records, asked, held, { ...bounds, ...looks })
            const expected = naive([...known.values()], wanted, by)
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

  it("ask nothing of the store once they are held", async () => {
    const { api, held, reads } = await world(100)
    const asked = { ...everything, span: { low: 50, high: 150 }, limit: 9 }
    const found = await walk(api, { ...asked, order: { by: "id", descending: true } }, held)
    expect(found.map(({ id }) => id)).toEqual(
      Array.from({ length: 40 }, (_, at) => person(89 - at).id)
    )
    await walk(api, { ...everything, order: { by: "name", descending: false } }, held)
    expect(reads.count).toBe(0)
  })

  it("show a change that was written, and read that part again alone", async () => {
    const { api, held, reads, records } = await world(100)
    await run(put(records, person(40, 149)))
    await run(remove(records, person(41).id))
    await run(put(records, person(100, 148)))
    const asked = { ...everything, span: { low: 120, high: 150 } }
    expect(await walk(api, asked, held)).toEqual([person(40, 149), person(100, 148)])
    expect(reads.count).toBe(2)
    expect(await walk(api, everything, held)).toHaveLength(100)
    expect(reads.count).toBe(2)
  })

  it("take nothing in that changed while it was read", async () => {
    const { held, records } = await world(30)
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
    const own = new HeldRows(racing, customers, columns, generous)
    await filled(racing, own)
    const aged = { ...everything, span: { low: 140, high: 150 } }
    expect(await walk(racing, aged, own)).toEqual([person(12, 149)])
    expect(await walk(records, aged, held)).toEqual([person(12, 149)])
  })

  it("are not used while this node may have missed a change", async () => {
    const { api, held, reads } = await world(20)
    const behind: RecordsApi = { ...api, isCurrent: Effect.succeed(false) }
    const own = new HeldRows(behind, customers, columns, generous)
    expect(await walk(behind, everything, own)).toHaveLength(20)
    expect([reads.count > 0, own.isFull, held.isFull]).toEqual([true, false, true])
  })

  it("are forgotten where anything may have changed", async () => {
    const records = makeMemoryRecords()
    let forget: ((key: string | undefined) => void) | undefined
    const watched: RecordsApi = {
      ...records,
      watch: (table, changed) => {
        forget = changed
        records.watch(table, changed)
      }
    }
    const held = new HeldRows(watched, customers, columns, generous)
    for (let n = 0; n < 20; n++) await run(put(records, person(n)))
    await filled(watched, held)
    forget?.(undefined)
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
    const held = new HeldRows(records, customers, columns, generous)
    await filled(records, held)
    expect(await walk(records, everything, held)).toEqual([person(1), odd])
  })
})
