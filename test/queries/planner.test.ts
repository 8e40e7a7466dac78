/** Queries by every way of the planner, compared with a scan of every row. */
import { Effect } from "effect"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { conditionNodesMax, turnComparisonsMax } from "../../http/limits.ts"
import { comparisonsOf, filterOf, fold, type Order, type RowCondition,
  spanOf } from "../../http/query-engine/condition.ts"
import { conditionElement, queryElement, queryIn } from "../../http/query-engine/query-document.ts"
import { type Cursor, decodeCursor, encodeCursor, type QueryLimits, type RowRequest,
  runQuery } from "../../http/query-engine/query-run.ts"
import { compareDecimals, indexKey, isDecimal } from "../../http/query-engine/table-fields.ts"
import { customerChanges, customerRemoval,
  customersTable } from "../../http/resources/customers/customer-table.ts"
import { tables } from "../../http/resources/queries/query-forms.ts"
import type { RecordsApi } from "../../runtime/index.ts"
import { makeMemoryRecords } from "../../runtime/memory/records.ts"
import { condition, naive, order, people, type Person } from "./naive.ts"

const run = Effect.runPromise

const bounds: fc.Arbitrary<QueryLimits> = fc.record({
  scannedRowsMax: fc.integer({ min: 1, max: 40 }),
  sortedRowsMax: fc.constant(1_000),
  chunkRows: fc.integer({ min: 1, max: 20 }),
  probeRows: fc.constantFrom(0, 1, 5)
})

const fill = async (records: RecordsApi, all: ReadonlyArray<Person>): Promise<void> => {
  for (const { id, row } of all) {
    await run(records.write(customerChanges(id, JSON.stringify(row), undefined)))
  }
}

/** Reads all pages; checks that no page exceeds the limit. */
const walk = async (
  records: RecordsApi,
  asked: Omit<RowRequest, "after">,
  by: QueryLimits
): Promise<ReadonlyArray<string>> => {
  const ids: Array<string> = []
  let after: Cursor | undefined
  for (let pages = 0; pages < 500; pages++) {
    const page = await run(runQuery(records, { ...asked, after }, undefined, by))
    if (page._tag === "TooMany") throw new Error("too many")
    expect(page.entries.length).toBeLessThanOrEqual(asked.limit)
    ids.push(...page.entries.map(({ key }) => key))
    if (page.next === undefined) return ids
    // As a client sends it back.
    const place = decodeCursor(
      customersTable,
      asked.order,
      encodeCursor({ count: 0, cursor: page.next })
    )
    expect(place?.cursor).toEqual(page.next)
    after = place?.cursor
  }
  throw new Error("it has no end")
}

const all = { low: 0, high: customersTable.index?.max ?? 0 }

/** A page that ends between a stale key and the right one of the same row. */
const betweenTwoKeys: [ReadonlyArray<Person>, Array<number>, Order, number, QueryLimits] = [
  [{ id: "a", row: { name: "", age: 2 } }],
  [1],
  { by: "id", descending: false },
  1,
  { scannedRowsMax: 1, sortedRowsMax: 1_000, chunkRows: 1, probeRows: 0 }
]

describe("the planner", () => {
  it("finds the same rows as a scan of every row, in order, over any pages", async () => {
    await fc.assert(
      fc.asyncProperty(
        people,
        condition,
        order,
        fc.integer({ min: 1, max: 30 }),
        bounds,
        fc.constantFrom(1, turnComparisonsMax / 3, turnComparisonsMax),
        async (rows, wanted, by, limit, bound, comparisons) => {
          const records = makeMemoryRecords()
          await fill(records, rows)
          const span = spanOf(wanted, "age", all)
          const filter = filterOf(customersTable, wanted)
          const asked = { table: customersTable, filter, comparisons, span, order: by, limit }
          expect(await walk(records, asked, bound)).toEqual(naive(rows, wanted, by))
        }
      ),
      { numRuns: 400 }
    )
  })

  it("is not misled by keys of the index that fit no row any more", async () => {
    const ages = fc.integer({ min: 0, max: 150 })
    await fc.assert(
      fc.asyncProperty(
        people,
        fc.array(ages, { maxLength: 40 }),
        order,
        ages,
        bounds,
        async (rows, stale, by, least, bound) => {
          const records = makeMemoryRecords()
          await fill(records, rows)
          const planted = stale.flatMap((age, at) => {
            const person = rows[at % Math.max(1, rows.length)]
            const id = person === undefined || person.row["age"] === age ? `x${at}` : person.id
            return [{ table: "customers-by-age", key: indexKey(age, id), value: "" }]
          })
          await run(records.write(planted))
          const wanted = { _tag: "where", field: "age", op: "ge", value: String(least) } as const
          const asked = {
            table: customersTable,
            filter: filterOf(customersTable, wanted),
            span: { low: least, high: 150 },
            order: by,
            limit: 7
          }
          expect(await walk(records, asked, bound)).toEqual(naive(rows, wanted, by))
        }
      ),
      { numRuns: 200, examples: [betweenTwoKeys] }
    )
  })

  it("keeps rows and index together through changes and removals", async () => {
    await fc.assert(
      fc.asyncProperty(people, people, fc.nat(), async (before, after, removed) => {
        const records = makeMemoryRecords()
        await fill(records, before)
        const known = new Map(before.map((person) => [person.id, person]))
        for (const person of after) {
          const old = known.get(person.id)
          const was = old === undefined ? undefined : JSON.stringify(old.row)
          const value = JSON.stringify(person.row)
          await run(records.write(customerChanges(person.id, value, was)))
          known.set(person.id, person)
        }
        const [gone] = [...known.values()].slice(removed % Math.max(1, known.size))
        if (gone !== undefined) {
          await run(records.write(customerRemoval(gone.id, JSON.stringify(gone.row))))
          known.delete(gone.id)
        }
        const keys = await run(records.keys("customers-by-age", [{ limit: 1_000 }]))
        const expected = [...known.values()].map(({ id, row }) => indexKey(Number(row["age"]), id))
        expect([...keys[0] ?? []].sort()).toEqual(expected.sort())
      }),
      { numRuns: 100 }
    )
  })

  it("rejects a query that would sort too many rows", async () => {
    const records = makeMemoryRecords()
    const rows = Array.from({ length: 30 }, (_, at) => ({
      id: `i${at}`,
      row: { name: `n${at}`, age: 30 }
    }))
    await fill(records, rows)
    const asked = {
      table: customersTable,
      filter: () => true,
      span: all,
      order: { by: "name", descending: false },
      limit: 5,
      after: undefined
    }
    const usual = { scannedRowsMax: 10, chunkRows: 5, probeRows: 0 }
    const few = await run(runQuery(records, asked, undefined, { ...usual, sortedRowsMax: 20 }))
    expect(few._tag).toBe("TooMany")
    const enough = await run(runQuery(records, asked, undefined, { ...usual, sortedRowsMax: 31 }))
    expect(enough._tag).toBe("Page")
  })
})

describe("a query with the most conditions", () => {
  const wanted: RowCondition = {
    _tag: "any",
    of: Array.from({ length: conditionNodesMax - 1 }, (_, at) => ({
      _tag: "where" as const,
      field: at % 2 === 0 ? "name" : "city",
      op: "contains" as const,
      value: `no such text ${at}`
    }))
  }

  it("folds each text of a row once, and none that it does not need", () => {
    const folded: Array<string> = []
    const filter = filterOf(customersTable, wanted, (text) => {
      folded.push(text)
      return fold(text)
    })
    expect(filter({ name: "Ann", age: 30, city: "Oslo" }, "a")).toBe(false)
    expect(folded).toEqual(["Ann", "Oslo"])
    expect(filter({ name: "Bea", age: 30 }, "b")).toBe(false)
    expect(folded.slice(2)).toEqual(["Bea", ""])
    expect(filter({ name: "NO SUCH TEXT 0", age: 30, city: "Rome" }, "c")).toBe(true)
    expect(folded.slice(4)).toEqual(["NO SUCH TEXT 0"])
  })

  it.each(["id", "age", "name"])("compares few rows a turn, in the order of %s", async (by) => {
    const records = makeMemoryRecords()
    const rows = Array.from({ length: 2_000 }, (_, at) => ({
      id: `i${at}`,
      row: { name: `n${at}`, age: at % 100 }
    }))
    await fill(records, rows)
    const comparisons = comparisonsOf(wanted)
    expect(comparisons).toBe(conditionNodesMax - 1)
    let [tested, inTurn, most] = [0, 0, 0]
    const filter = () => {
      tested++
      most = Math.max(most, ++inTurn)
      return false
    }
    let isOver = false
    const nextTurn = () => {
      inTurn = 0
      if (!isOver) setImmediate(nextTurn)
    }
    nextTurn()
    const order = { by, descending: false }
    const asked = { table: customersTable, filter, comparisons, span: all, order, limit: 100 }
    await run(runQuery(records, { ...asked, after: undefined }, undefined))
    isOver = true
    expect(tested).toBe(rows.length)
    expect(most * comparisons).toBeLessThanOrEqual(turnComparisonsMax)
  })
})

describe("documents", () => {
  it("are unchanged after they are written and read", () => {
    fc.assert(fc.property(condition, order, (wanted, by) => {
      const query = { on: "customers", condition: wanted, order: by, fields: ["age"], limit: 3 }
      const element = queryElement({ ...query, on: "customers" }, "http://localhost/queries/x")
      expect(queryIn(tables, element)).toEqual({ ok: true, value: query })
      expect(conditionElement(wanted).name).toBe(wanted._tag)
    }))
  })
})

describe("decimals", () => {
  it("compare exactly", () => {
    const digits = fc.bigInt({ min: -(10n ** 40n), max: 10n ** 40n })
    const scale = 10
    const asText = (n: bigint, zeros: number) => {
      const text = (n < 0n ? -n : n).toString().padStart(scale + 1, "0")
      const whole = `${"0".repeat(zeros)}${text.slice(0, -scale)}`
      return `${n < 0n ? "-" : ""}${whole}.${text.slice(-scale)}${"0".repeat(zeros)}`
    }
    fc.assert(fc.property(digits, digits, fc.nat(3), fc.nat(3), (a, b, x, y) => {
      const [one, other] = [asText(a, x), asText(b, y)]
      expect(isDecimal(one)).toBe(true)
      expect(Math.sign(compareDecimals(one, other))).toBe(a < b ? -1 : a > b ? 1 : 0)
    }))
    expect(compareDecimals("-0", "0.00")).toBe(0)
    const zeros = "0".repeat(3_000)
    expect(compareDecimals(`1.${zeros}`, "1")).toBe(0)
    expect(compareDecimals(`1.${zeros}1`, `1.${zeros}`)).toBeGreaterThan(0)
    expect(compareDecimals("+1", "1.0")).toBe(0)
    expect(["1e3", "", ".5", "5.", "0x1", "1 "].map(isDecimal)).toEqual(Array(6).fill(false))
  })
})
