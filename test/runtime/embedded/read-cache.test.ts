/** Cached results, compared with new reads, through changes of any kind. */
import fc from "fast-check"
import { expect, it } from "vitest"
import { ReadCache } from "../../../runtime/embedded/records/read-cache.ts"
import { cachedCharsMax } from "../../../runtime/limits.ts"
import { RecordTables } from "../../../runtime/ports/record-table.ts"
import type { RecordRange } from "../../../runtime/ports/records.ts"

const table = fc.constantFrom("t", "u")

const key = fc.constantFrom("a", "a\u0001", "a\u00015", "b", "5", "")

const range: fc.Arbitrary<RecordRange> = fc.record({
  limit: fc.constantFrom(1, 5),
  reverse: fc.boolean(),
  prefix: fc.constantFrom("", "a"),
  after: fc.option(key, { nil: undefined })
}).map(({ after, ...rest }) => after === undefined ? rest : { ...rest, after })

it("returns the current records, and the same object until a change", () => {
  const change = fc.record({ table, key, value: fc.option(fc.constantFrom("1", "2")) })
  const asked = fc.record({
    table,
    range,
    keys: fc.array(key, { maxLength: 3 }),
    ranges: fc.array(range, { maxLength: 2 })
  })
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.array(change), fc.array(asked))), (rounds) => {
      const tables = new RecordTables()
      const cache = new ReadCache(tables)
      for (const [changes, questions] of rounds) {
        for (const one of changes) cache.beginChange(one.table)
        const before = questions.map(({ range: wanted, table: name }) => cache.range(name, wanted))
        tables.apply(changes)
        for (const [at, { range: wanted, table: name }] of questions.entries()) {
          const isChanging = changes.some((one) => one.table === name)
          const found = cache.range(name, wanted)
          expect(found).toEqual(tables.range(name, wanted))
          expect(found === before[at]).toBe(!isChanging)
        }
        for (const one of changes) cache.endChange(one.table)
        for (const { keys, range: wanted, ranges, table: name } of questions) {
          const answers = () => [
            cache.range(name, wanted),
            cache.getMany(name, keys),
            cache.keys(name, ranges)
          ]
          const [found, values, names] = answers()
          expect(found).toEqual(tables.range(name, wanted))
          expect(values).toEqual(tables.getMany(name, keys))
          expect(names).toEqual(tables.keys(name, ranges))
          const again = answers()
          expect([again[0] === found, again[1] === values, again[2] === names]).toEqual([
            true,
            true,
            true
          ])
        }
      }
    })
  )
})

it("evicts the least recently used results, and caches no large one", () => {
  const tables = new RecordTables()
  const value = "x".repeat(100_000)
  tables.apply([{ table: "t", key: "k", value }])
  const cache = new ReadCache(tables)
  const first = cache.range("t", { limit: 1 })
  const many = Math.ceil(cachedCharsMax / value.length) - 2
  for (let limit = 2; limit <= many; limit++) void cache.range("t", { limit })
  expect(cache.range("t", { limit: 1 })).toBe(first)
  const second = cache.range("t", { limit: 2 })
  for (let limit = 100; limit < 103; limit++) void cache.range("t", { limit })
  expect(cache.range("t", { limit: 1 })).toBe(first)
  expect(cache.range("t", { limit: 2 })).toEqual(second)
  for (let limit = 200; limit < 200 + 2 * many; limit++) void cache.range("t", { limit })
  expect(cache.range("t", { limit: 1 })).not.toBe(first)
  tables.apply([{ table: "t", key: "k", value: value.repeat(2) }])
  cache.beginChange("t")
  cache.endChange("t")
  const large = cache.range("t", { limit: 1 })
  expect([large, cache.range("t", { limit: 1 }) === large]).toEqual([
    tables.range("t", { limit: 1 }),
    false
  ])
})
