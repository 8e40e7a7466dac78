/** The index of record keys against a plain sorted array. */
import fc from "fast-check"
import { expect, it } from "vitest"
import { KEYS_CHUNK } from "../../runtime/nats/limits.ts"
import { Index } from "../../runtime/nats/record-index.ts"
import type { RecordRange } from "../../runtime/ports/records.ts"

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

it("gives what a sorted array gives, through changes before and after the listing", () => {
  const changes = fc.array(fc.record({ key, isGone: fc.boolean(), seq: fc.nat(20) }))
  fc.assert(
    fc.property(fc.array(key), changes, changes, fc.array(range), (listed, early, late, ranges) => {
      const index = new Index()
      const keys = new Set(listed)
      for (const change of early) index.apply(change)
      index.list(listed, 10)
      for (const change of [...early.filter(({ seq }) => seq > 10), ...late]) {
        if (change.isGone) keys.delete(change.key)
        else keys.add(change.key)
      }
      for (const change of late) index.apply(change)
      expect(index.size).toBe(keys.size)
      for (const one of ranges) {
        expect(index.page(one, one.after, one.limit)).toEqual(naive(keys, one))
      }
    }),
    { numRuns: 500 }
  )
})

it("keeps many, in and out of order, until none is left", () => {
  const count = 5 * KEYS_CHUNK
  const names = Array.from({ length: count }, (_, at) => String(at).padStart(6, "0"))
  for (const step of [1, 7, count - 1]) {
    const index = new Index()
    index.list([], 0)
    const all = names.map((_, at) => names[at * step % count] ?? "")
    for (const one of all) index.apply({ key: one, seq: 1, isGone: false })
    expect(index.page({ limit: count }, undefined, count)).toEqual([...new Set(all)].sort())
    const some = { reverse: true, limit: 3 }
    expect(index.page(some, names[KEYS_CHUNK], 3)).toEqual(
      naive(all, { ...some, after: names[KEYS_CHUNK] ?? "" })
    )
    for (const one of all) index.apply({ key: one, seq: 2, isGone: true })
    expect([index.size, index.page({ limit: 9 }, undefined, 9)]).toEqual([0, []])
  }
})
