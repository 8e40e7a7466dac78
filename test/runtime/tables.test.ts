/** Tables in memory against a plain sorted array. */
import fc from "fast-check"
import { expect, it } from "vitest"
import { KEYS_CHUNK, RecordTables } from "../../runtime/ports/record-table.ts"
import type { RecordChange, RecordRange } from "../../runtime/ports/records.ts"

const key = fc.string({
  unit: fc.constantFrom("a", "b", "/", "\uffee", "\u{1F40E}", "\u{10FFFF}"),
  maxLength: 4
})

const range: fc.Arbitrary<RecordRange> = fc.record({
  prefix: fc.option(key, { nil: undefined }),
  after: fc.option(key, { nil: undefined }),
  reverse: fc.boolean(),
  limit: fc.nat(6)
}).map(({ after, limit, prefix, reverse }) => ({
  limit,
  reverse,
  ...after === undefined ? {} : { after },
  ...prefix === undefined ? {} : { prefix }
}))

const compare = (one: string, other: string) => Buffer.compare(Buffer.from(one), Buffer.from(other))

const naive = (keys: Iterable<string>, { after, limit, prefix = "", reverse }: RecordRange) => {
  const sorted = [...keys].filter((one) => one.startsWith(prefix)).filter((one) =>
    after === undefined || (reverse === true ? compare(one, after) < 0 : compare(one, after) > 0)
  ).sort(compare)
  return (reverse === true ? sorted.toReversed() : sorted).slice(0, limit)
}

const put = (one: string): RecordChange => ({ table: "t", key: one, value: `of ${one}` })
const remove = (one: string): RecordChange => ({ table: "t", key: one, value: null })

it("equals a sorted array, through changes", () => {
  const changes = fc.array(fc.record({ key, isGone: fc.boolean() }))
  fc.assert(
    fc.property(changes, fc.array(range), (made, ranges) => {
      const tables = new RecordTables()
      const keys = new Set<string>()
      for (const { isGone, key: one } of made) {
        if (isGone) keys.delete(one)
        else keys.add(one)
        tables.apply([isGone ? remove(one) : put(one)])
      }
      expect(tables.keys("t", ranges)).toEqual(ranges.map((one) => naive(keys, one)))
      for (const one of ranges) {
        const entries = naive(keys, one).map((name) => ({ key: name, value: `of ${name}` }))
        expect(tables.range("t", one)).toEqual(entries)
      }
      expect([tables.keys("u", ranges), tables.range("u", { limit: 9 })]).toEqual([
        ranges.map(() => []),
        []
      ])
    }),
    { numRuns: 500 }
  )
})

it("stores many keys, in and out of order, until all are removed", () => {
  const count = 5 * KEYS_CHUNK
  const names = Array.from({ length: count }, (_, at) => String(at).padStart(6, "0"))
  for (const step of [1, 7, count - 1]) {
    const tables = new RecordTables()
    const all = names.map((_, at) => names[at * step % count] ?? "")
    for (const one of all) tables.apply([put(one)])
    expect(tables.keys("t", [{ limit: count }])[0]).toEqual([...new Set(all)].sort())
    const some = { reverse: true, limit: 3, after: names[KEYS_CHUNK] ?? "" }
    expect(tables.keys("t", [some])[0]).toEqual(naive(all, some))
    for (const one of all) tables.apply([remove(one)])
    expect([tables.keys("t", [{ limit: 9 }]), tables.get("t", names[0] ?? "")]).toEqual([
      [[]],
      undefined
    ])
  }
})
