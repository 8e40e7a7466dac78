/** The contract of the record port (`runtime/ports/records.ts`), run against each backend. */
import { afterEach, beforeEach, describe, expect, it } from "vitest"
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
    it("keeps tables apart", async () => {
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
    it("keeps everything over a restart, also many written at once", async () => {
      const many = Array.from({ length: 500 }, (_, at) => String(at).padStart(3, "0"))
      await Promise.all(many.map((key) => put("quotes", key)))
      harness = await harness.reopen()
      records = harness.api
      expect(await keys({ limit: 1_000 })).toEqual(many)
      expect(await run(records.get("quotes", "499"))).toBe("value of 499")
    })
  })
}
