/** Packed rows, compared with the rows. */
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { blocksOf, columnsOf, RowBlock, UnpackableRow } from "../../http/query-engine/row-block.ts"
import { customersTable } from "../../http/resources/customers/customer-table.ts"
import { quotesTable } from "../../http/resources/quotes/quote-table.ts"
import { people, type Person } from "./naive.ts"

const columns = columnsOf(customersTable) ?? { index: "", names: [], texts: 0 }

describe("a block", () => {
  it("has the packed rows", () => {
    const rows = people.filter(({ length }) => length > 0)
    fc.assert(fc.property(rows, fc.nat(150), fc.nat(150), (some, one, other) => {
      const entries = some.map(({ id, row }) => ({ key: id, row }))
      const block = new RowBlock(columns, entries)
      expect(entries.map((_, at) => block.entry(at))).toEqual(entries)
      expect(entries.map((_, at) => block.key(at))).toEqual(entries.map(({ key }) => key))
      const [low, high] = [Math.min(one, other), Math.max(one, other)]
      const fitting = entries.flatMap(({ row }, at) =>
        Number(row["age"]) >= low && Number(row["age"]) <= high ? [at] : []
      )
      expect(block.next(0, low, high)).toBe(fitting[0] ?? block.size)
      expect(block.previous(block.size - 1, low, high)).toBe(fitting.at(-1) ?? -1)
    }))
  })

  it("has texts of any length and script", () => {
    const name = `${"x".repeat(70_000)}\u{1F40E}`
    const entries = [
      { key: "a", row: { name, age: 150, city: "" } },
      { key: "b", row: { name: "\ud800", age: 0, country: "é" } }
    ]
    const [block, ...rest] = blocksOf(columns, entries, 9)
    expect(rest).toHaveLength(1)
    expect(block?.entry(0)).toEqual(entries[0])
    expect(rest[0]?.entry(0)).toEqual(entries[1])
    expect(block?.bytes).toBeGreaterThan(140_000)
  })

  it("rejects rows that it could not return unchanged", () => {
    const packed = (row: Person["row"]) => () => new RowBlock(columns, [{ key: "k", row }])
    for (const age of [-1, 1.5, Number.NaN, 1e6, "7"]) {
      expect(packed({ name: "n", age })).toThrow(UnpackableRow)
    }
    expect(packed({ name: "n" })).toThrow(UnpackableRow)
    expect(packed({ name: 7, age: 7 })).toThrow(UnpackableRow)
    expect(packed({ name: "n", age: 7, other: "a field of a later version" })).not.toThrow()
    expect(columnsOf(quotesTable)).toBeUndefined()
  })
})
