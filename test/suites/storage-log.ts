/** The storage contract for logs and their removal. */
import { describe, expect, it } from "vitest"
import { shardOf } from "../../runtime/actor/address.ts"
import { isLogEnd } from "../../runtime/ports/storage.ts"
import { alice, bob, conflictOf, itemsOf, type Probe, revisionOf } from "./storage-probe.ts"

export const logCases = (
  { commit, load, numbers, one, read, readAtOnce, readChars, reopen, scan, timers }: Probe
): void => {
  describe("the log", () => {
    it("appends from 1 without a state", async () => {
      expect(revisionOf(await one({ append: itemsOf(1, 3) }))).toBe(0)
      expect(await load()).toEqual({ state: undefined, revision: 0, head: 3 })
      expect(await read()).toEqual(itemsOf(1, 3))
    })
    it("does not change the state's revision when it only appends", async () => {
      const revision = revisionOf(await one({ state: "a" }))
      expect(revisionOf(await one({ append: itemsOf(1, 1), expected: revision }))).toBe(revision)
      expect(await load()).toEqual({ state: "a", revision, head: 1 })
    })
    it("compares the revision also when it only appends", async () => {
      const revision = revisionOf(await one({ state: "a" }))
      expect(conflictOf(await one({ append: itemsOf(1, 1), expected: 0, timer: 3 })))
        .toMatchObject({ _tag: "RevisionConflict", actual: revision })
      expect(await numbers()).toEqual([])
      expect(await timers(shardOf(alice))).toEqual([])
      expect(revisionOf(await one({ append: itemsOf(1, 1), expected: revision }))).toBe(revision)
    })
    it("rejects a commit as a whole if an item number exists", async () => {
      await one({ append: itemsOf(1, 3) })
      for (const n of [1, 3]) {
        expect(conflictOf(await one({ append: itemsOf(n, 5), timer: 1 }))).toMatchObject({
          _tag: "LogConflict",
          key: "mailbox/alice",
          item: n
        })
      }
      expect(await numbers()).toEqual([1, 2, 3])
      expect(await timers(shardOf(alice))).toEqual([])
    })
    it("rejects an existing item number at the right revision", async () => {
      const revision = revisionOf(await one({ state: "a", append: itemsOf(1, 2), head: 2 }))
      const outcome = await one({
        state: "b",
        expected: revision,
        append: itemsOf(2, 2),
        head: 2
      })
      expect(conflictOf(outcome)).toMatchObject({ _tag: "LogConflict", item: 2 })
      expect((await load()).state).toBe("a")
    })
    it("returns appended items in the turn that reports the commit", async () => {
      for (let n = 1; n <= 20; n++) {
        expect(await readAtOnce({ append: itemsOf(n, n) }, n)).toEqual(itemsOf(n, n))
      }
    })
    it("reads from a number, up to a limit", async () => {
      await one({ append: itemsOf(1, 30) })
      expect(await read(5, 3)).toEqual(itemsOf(5, 7))
      expect(await read(29, 10)).toEqual(itemsOf(29, 30))
      expect(await read(31, 10)).toEqual([])
      expect(await read(0, 1)).toEqual(itemsOf(1, 1))
      expect(await read(1, 0)).toEqual([])
    })
    it("ends a read with the item that reaches a number of characters", async () => {
      const sizes = [10, 10, 2_000, 10, 70_000, 3, 200_000, 200_000, 5, 5]
      const items = sizes.map((size, at) => ({ n: at + 1, value: "\u20ac".repeat(size) }))
      for (const item of items) await one({ append: [item] })
      const ends = async (charsMax: number, from = 1, limit = 100) => {
        const found = await readChars(from, limit, charsMax)
        expect(found).toEqual(items.slice(from - 1, from - 1 + found.length))
        return found.at(-1)?.n
      }
      expect(await ends(1)).toBe(1)
      expect(await ends(20)).toBe(2)
      expect(await ends(21)).toBe(3)
      expect(await ends(2_031)).toBe(5)
      expect(await ends(72_030)).toBe(5)
      expect(await ends(72_031)).toBe(6)
      expect(await ends(72_034)).toBe(7)
      expect(await ends(1, 7)).toBe(7)
      expect(await ends(200_001, 7)).toBe(8)
      expect(await ends(1_000_000)).toBe(10)
      expect(await ends(1_000_000, 2, 3)).toBe(4)
      expect(await readChars(11, 10, 5)).toEqual([])
    })
    it("finds all items in parts of bounded characters, whatever was removed", async () => {
      const sized = (from: number, to: number, chars: (n: number) => number) =>
        itemsOf(from, to).map(({ n, value }) => ({ n, value: value.padEnd(chars(n), "x") }))
      await one({ state: "a", append: sized(1, 40, () => 300), head: 40 })
      await one({ append: sized(41, 60, () => 9_000), expected: (await load()).revision })
      await one({ append: sized(61, 300, (n) => n % 7), expected: (await load()).revision })
      // The message of several items gets a later sequence than the items after it.
      const remove = [2, 3, 18, 41, 42, 43, 59, 100, ...itemsOf(120, 280).map(({ n }) => n)]
      await one({ state: "b", expected: (await load()).revision, head: 300, remove })
      const all = await read()
      expect(all.map(({ n }) => n)).toEqual(
        itemsOf(1, 300).map(({ n }) => n).filter((n) => !remove.includes(n))
      )
      for (const charsMax of [1, 500, 20_000, 100_000]) {
        const found = []
        for (let next = 1, isEnd = false; !isEnd;) {
          const part = await readChars(next, 250, charsMax)
          expect(part.slice(0, -1).reduce((sum, { value }) => sum + value.length, 0))
            .toBeLessThan(charsMax)
          found.push(...part)
          next = (part.at(-1)?.n ?? 0) + 1
          isEnd = part.length === 0 || isLogEnd(part, 250, charsMax)
        }
        expect(found).toEqual(all)
      }
    })
    it("sorts by number, not by digits", async () => {
      for (let n = 1; n <= 1_100; n += 100) await one({ append: itemsOf(n, n + 99) })
      expect(await numbers()).toEqual(Array.from({ length: 1_100 }, (_, at) => at + 1))
    })
    it("removes items with the state, and ignores missing ones", async () => {
      await one({ state: "a", append: itemsOf(1, 5), head: 5 })
      const { revision } = await load()
      await one({ state: "b", expected: revision, head: 5, remove: [2, 4, 77] })
      expect(await numbers()).toEqual([1, 3, 5])
    })
    it("preserves the head when the last items are removed, and reuses no number", async () => {
      const first = revisionOf(await one({ state: "a", append: itemsOf(1, 5), head: 5 }))
      const second = revisionOf(
        await one({ state: "b", expected: first, head: 5, remove: [3, 4, 5] })
      )
      expect((await load()).head).toBe(5)
      await reopen()
      expect((await load()).head).toBe(5)
      expect(
        conflictOf(await one({ state: "c", expected: second, append: itemsOf(5, 5), head: 5 }))
      )
        .toMatchObject({ _tag: "LogConflict", item: 5 })
      await one({ expected: second, append: itemsOf(6, 6) })
      expect(await numbers()).toEqual([1, 2, 6])
    })
    it("skips numbers of items that one commit creates and removes", async () => {
      const revision = revisionOf(
        await one({ state: "a", append: [{ n: 2, value: "two" }], head: 3, remove: [1, 3] })
      )
      expect(await load()).toMatchObject({ head: 3 })
      expect(await read()).toEqual([{ n: 2, value: "two" }])
      await one({ expected: revision, append: itemsOf(4, 4) })
      expect(await numbers()).toEqual([2, 4])
    })
    it("appends and removes in one commit", async () => {
      const revision = revisionOf(await one({ state: "a", append: itemsOf(1, 3), head: 3 }))
      await one({ state: "b", expected: revision, append: itemsOf(4, 5), remove: [1], head: 5 })
      expect(await numbers()).toEqual([2, 3, 4, 5])
    })
    it("rejects a removal without the state", async () => {
      await one({ append: itemsOf(1, 2) })
      await expect(one({ remove: [1] })).rejects.toThrow()
      expect(await numbers()).toEqual([1, 2])
    })
  })

  describe("removal", () => {
    it("deletes state, log and timer, regardless of the rest of the commit", async () => {
      const revision = revisionOf(
        await one({ state: "a", append: itemsOf(1, 10), head: 10, timer: 99 })
      )
      await one({ state: null, expected: revision, append: itemsOf(11, 12), timer: 5 })
      expect(await load()).toEqual({ state: undefined, revision: 0, head: 0 })
      expect(await read()).toEqual([])
      expect(await timers(shardOf(alice))).toEqual([])
      expect(await scan("mailbox", undefined, 10)).toEqual([])
    })
    it("deletes the log of an actor without a state", async () => {
      await one({ append: itemsOf(1, 3) })
      await one({ state: null })
      expect(await load()).toEqual({ state: undefined, revision: 0, head: 0 })
      expect(await read()).toEqual([])
    })
    it("succeeds for an actor that does not exist", async () => {
      expect(revisionOf(await one({ state: null }))).toBe(0)
    })
    it("lets the log restart at 1, also in the same group", async () => {
      const revision = revisionOf(await one({ state: "a", append: itemsOf(1, 3), head: 3 }))
      const again = [{ n: 1, value: "again" }]
      await commit({ state: null, expected: revision }, { state: "b", append: again, head: 1 })
      expect(await load()).toMatchObject({ state: "b", head: 1 })
      expect(await read()).toEqual(again)
      await reopen()
      expect(await read()).toEqual(again)
    })
    it("deletes a long log completely and quickly", async () => {
      for (let n = 1; n <= 20_000; n += 2_000) await one({ append: itemsOf(n, n + 1_999) })
      await one({ append: [{ n: 1, value: "bob's" }], address: bob })
      await one({ state: null })
      expect(await read()).toEqual([])
      await one({ append: itemsOf(1, 2) })
      await reopen()
      expect(await numbers()).toEqual([1, 2])
      expect(await numbers(bob)).toEqual([1])
    })
  })
}
