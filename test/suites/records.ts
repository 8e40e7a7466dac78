/** The contract of the record port (`runtime/ports/records.ts`), run against each backend. */
import { Effect } from "effect"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import type { StorageFailure } from "../../runtime/index.ts"
import { decodeRecord, encodeRecord, readableRecords } from "../../runtime/ports/record-format.ts"
import type { RecordRange, RecordsApi } from "../../runtime/ports/records.ts"
import type { Fresh, Harness } from "./harness.ts"
import { run } from "./storage-probe.ts"

export const recordsSuite = (name: string, fresh: Fresh<RecordsApi>): void => {
  describe(`records: ${name}`, () => {
    let harness: Harness<RecordsApi>
    let records: RecordsApi
    beforeEach(async () => {
      harness = await fresh()
      records = harness.api
    })
    afterEach(() => harness.close())

    const put = (table: string, ...keys: ReadonlyArray<string>) =>
      run(records.write(keys.map((key) => ({ table, key, value: `value of ${key}` }))))
    const keys = async (range: Partial<RecordRange>, table = "quotes") =>
      (await run(records.range(table, { limit: 100, ...range }))).map(({ key }) => key)

    it("writes, replaces, removes", async () => {
      await put("quotes", "a", "b")
      await run(records.write([
        { table: "quotes", key: "a", value: null },
        { table: "quotes", key: "b", value: "new" },
        { table: "quotes", key: "none", value: null },
        { table: "by-age", key: "a", value: "other table" }
      ]))
      expect(await run(records.get("quotes", "a"))).toBeUndefined()
      expect(await run(records.get("quotes", "b"))).toBe("new")
      expect(await run(records.get("by-age", "a"))).toBe("other table")
      expect(await run(records.get("no-table", "a"))).toBeUndefined()
      await run(records.write([]))
    })
    it("has records of a later format: reading one fails, and it stays", async () => {
      const stored = (format: number) => encodeRecord({ format, text: `form ${format}` })
      const later = { table: "quotes", key: "b", value: stored(2) }
      await put("quotes", "a", "c")
      await run(records.write([later]))
      const [old, current] = [readableRecords(records, 1), readableRecords(records, 2)]
      const expected = "the record quotes/b is stored in format 2, and this node reads up to 1: " +
        "update this node"
      const reads = (of: RecordsApi): ReadonlyArray<Effect.Effect<unknown, StorageFailure>> => [
        of.get("quotes", "b"),
        of.getMany("quotes", ["a", "none", "b"]),
        of.range("quotes", { limit: 3 })
      ]
      for (const read of reads(old)) {
        expect(await run(Effect.flip(read))).toHaveProperty("detail", expected)
      }
      expect(await run(old.get("quotes", "a"))).toBe("value of a")
      expect(await run(old.getMany("quotes", ["a", "none"]))).toEqual(["value of a", undefined])
      expect(await run(old.range("quotes", { limit: 1 }))).toHaveLength(1)
      for (const read of reads(current)) await run(read)
      expect(await run(records.get("quotes", "b"))).toBe(stored(2))
      expect(decodeRecord(stored(2))).toEqual({ format: 2, text: "form 2" })
      expect(decodeRecord("value of a")).toEqual({ format: 1, text: "value of a" })
      expect(() => decodeRecord("@text")).toThrow("no format")
    })
    it("lets the last change of a key win", async () => {
      await run(records.write(["1", null, "2"].map((value) => ({ table: "t", key: "k", value }))))
      expect(await run(records.get("t", "k"))).toBe("2")
    })
    it("orders by UTF-8 bytes", async () => {
      const sorted = ["", "\u0001", " ", "/", "0", "A", "a", "a/", "aa", "é", "\uffee", "🐎"]
      await put("quotes", ...sorted.toReversed())
      expect(await keys({})).toEqual(sorted)
      expect(await keys({ reverse: true })).toEqual(sorted.toReversed())
      for (const key of sorted) {
        expect(await run(records.get("quotes", key))).toBe(`value of ${key}`)
      }
    })
    it("separates tables", async () => {
      await put("a", "x")
      await put("a-b", "y")
      await put("b", "z")
      expect(await keys({}, "a")).toEqual(["x"])
      expect(await keys({}, "a-b")).toEqual(["y"])
    })
    it("ranges by prefix, after, limit and backwards", async () => {
      await put("quotes", "a", "b/1", "b/2", "b/3", "b0", "c")
      expect(await keys({ prefix: "b/" })).toEqual(["b/1", "b/2", "b/3"])
      expect(await keys({ prefix: "b/", reverse: true, limit: 2 })).toEqual(["b/3", "b/2"])
      expect(await keys({ prefix: "b/", after: "b/1" })).toEqual(["b/2", "b/3"])
      expect(await keys({ prefix: "b/", after: "b/2", reverse: true })).toEqual(["b/1"])
      expect(await keys({ prefix: "b/", after: "a" })).toEqual(["b/1", "b/2", "b/3"])
      expect(await keys({ prefix: "b/", after: "c" })).toEqual([])
      expect(await keys({ prefix: "b/", after: "c", reverse: true, limit: 1 })).toEqual(["b/3"])
      expect(await keys({ prefix: "b/", after: "a", reverse: true })).toEqual([])
      expect(await keys({ after: "b/15" })).toEqual(["b/2", "b/3", "b0", "c"])
      expect(await keys({ after: "b/15", reverse: true })).toEqual(["b/1", "a"])
      expect(await keys({ limit: 2 })).toEqual(["a", "b/1"])
      expect(await keys({ limit: 0 })).toEqual([])
      expect(await keys({ prefix: "none" })).toEqual([])
    })
    it("writes if the expected values are current", async () => {
      const a = (value: string | null) => ({ table: "quotes", key: "a", value })
      const b = (value: string | null) => ({ table: "quotes", key: "b", value })
      expect(await run(records.writeIf([a(null)], [a("1"), b("1")]))).toBe(true)
      expect(await run(records.writeIf([a(null)], [a("2"), b("2")]))).toBe(false)
      expect(await run(records.writeIf([a("1"), b("0")], [a("2"), b("2")]))).toBe(false)
      expect(await run(records.getMany("quotes", ["a", "b"]))).toEqual(["1", "1"])
      expect(await run(records.writeIf([a("1"), b("1")], [a(null), b("2")]))).toBe(true)
      expect(await run(records.writeIf([a("1")], [a("3")]))).toBe(false)
      expect(await run(records.writeIf([a(null)], [a("4")]))).toBe(true)
      expect(await run(records.getMany("quotes", ["b", "none", "a", "b"]))).toEqual([
        "2",
        undefined,
        "4",
        "2"
      ])
      expect(await run(records.getMany("quotes", []))).toEqual([])
      const unchanged = run(records.writeIf([a("4")], [b("5")]))
      await expect(unchanged).rejects.toThrow("expected and not changed")
    })
    it("lets exactly one of many conditional writers win", async () => {
      let value: string | null = null
      for (let round = 0; round < 5; round++) {
        const seen: string | null = value
        const written: ReadonlyArray<boolean> = await Promise.all(
          Array.from({ length: 8 }, (_, one) =>
            run(records.writeIf(
              [{ table: "t", key: "k", value: seen }],
              [{ table: "t", key: "k", value: `${round}.${one}` }]
            )))
        )
        expect(written.filter((isWritten) => isWritten)).toHaveLength(1)
        value = `${round}.${written.indexOf(true)}`
        expect(await run(records.get("t", "k"))).toBe(value)
      }
    })
    it("orders conditional writes after earlier plain writes", async () => {
      const change = (value: string) => [{ table: "t", key: "k", value }]
      await run(records.write(change("0")))
      const plain = run(records.write(change("1")))
      const late = run(records.writeIf(change("0"), change("2")))
      await plain
      const isWritten = await late
      expect(await run(records.get("t", "k"))).toBe(isWritten ? "2" : "1")
      // The conditional write was submitted later, so it must see the plain one.
      expect(isWritten).toBe(false)
    })
    it("returns the keys of several ranges", async () => {
      await put("ages", "030/a", "030/c", "031/b", "032/a", "032/d")
      const ranges = ["030/", "031/", "033/", "032/"].map((prefix) => ({ prefix, limit: 1 }))
      expect(await run(records.keys("ages", ranges))).toEqual([["030/a"], ["031/b"], [], ["032/a"]])
      const rest = [
        { prefix: "030/", after: "030/a", limit: 9 },
        { prefix: "032/", reverse: true, limit: 9 },
        { prefix: "032/", limit: 0 }
      ]
      const sparse = ["029/", "030/", "0305", "031/", "033/", "040/", "031/"]
      const past = [{ prefix: "030/", after: "030/c", limit: 9 }, { prefix: "030/c", limit: 9 }]
      expect(await run(records.keys("ages", past))).toEqual([[], ["030/c"]])
      const some = sparse.map((prefix) => ({ prefix, limit: 2 }))
      expect(await run(records.keys("ages", some))).toEqual([
        [],
        ["030/a", "030/c"],
        [],
        ["031/b"],
        [],
        [],
        ["031/b"]
      ])
      expect(await run(records.keys("ages", rest))).toEqual([["030/c"], ["032/d", "032/a"], []])
      expect(await run(records.keys("ages", []))).toEqual([])
    })
    it("notifies a watcher of each change before it is current", async () => {
      const changedKeys = new Set<string | undefined>()
      const pending = new Map<string, number>()
      records.watch("quotes", {
        changing: (key) => pending.set(key, (pending.get(key) ?? 0) + 1),
        changed: (key) => {
          changedKeys.add(key)
          if (key !== undefined) pending.set(key, (pending.get(key) ?? 0) - 1)
        }
      })
      const current = async () => {
        while (!await run(records.isCurrent)) await new Promise((resolve) => setTimeout(resolve, 5))
        const sortedKeys = [...changedKeys].filter((key) => key !== undefined).sort()
        changedKeys.clear()
        return sortedKeys
      }
      await put("quotes", "a", "b/1")
      await put("other", "c")
      expect(await current()).toEqual(["a", "b/1"])
      expect(await current()).toEqual([])
      const removal = { table: "quotes", key: "a", value: null }
      const value = "value of b/1"
      await run(
        records.writeIf([{ ...removal, key: "b/1", value }], [removal, { ...removal, key: "b/1" }])
      )
      expect(await current()).toEqual(["a", "b/1"])
      await run(records.writeIf([{ ...removal, value: "other" }], [removal]))
      await current()
      expect([...pending]).toEqual([["a", 0], ["b/1", 0]])
    })
    it("writes `changesMax` changes at once", async () => {
      const { changesMax } = records
      const many = Array.from({ length: changesMax }, (_, at) => ({
        table: "many",
        key: String(at),
        value: ""
      }))
      await run(records.write(many))
      const last = String(changesMax - 1)
      expect(await run(records.getMany("many", ["0", last]))).toEqual(["", ""])
    })
    it("returns everything after a restart, also many concurrent writes", async () => {
      const many = Array.from({ length: 500 }, (_, at) => String(at).padStart(3, "0"))
      await Promise.all(many.map((key) => put("quotes", key)))
      harness = await harness.reopen()
      records = harness.api
      expect(await keys({ limit: 1_000 })).toEqual(many)
      expect(await run(records.get("quotes", "499"))).toBe("value of 499")
    })
  })
}
