/** The contract of the storage port (`runtime/ports/storage.ts`), run against each backend. */
import { describe, expect, it } from "vitest"
import { address, shardOf } from "../../runtime/actor/address.ts"
import type { StorageApi, StoredTimer, TimerCursor } from "../../runtime/ports/storage.ts"
import type { Fresh } from "./harness.ts"
import { historyCases } from "./storage-history.ts"
import { logCases } from "./storage-log.ts"
import { alice, bob, conflictOf, itemsOf, probeOf, revisionOf,
  signalRevisionsOf } from "./storage-probe.ts"

export const storageSuite = (name: string, fresh: Fresh<StorageApi>): void => {
  describe(`storage: ${name}`, () => {
    const probe = probeOf(fresh)
    const { commit, load, numbers, one, read, reopen, scan, earliest, timers } = probe

    describe("state and its revision", () => {
      it("returns nothing for an actor that was never written", async () => {
        expect(await load()).toEqual({ state: undefined, revision: 0, head: 0 })
        expect(await read()).toEqual([])
      })
      it("stores a state, and increases its revision with each write", async () => {
        const first = revisionOf(await one({ state: "a" }))
        expect(first).toBeGreaterThan(0)
        const second = revisionOf(await one({ state: "b", expected: first }))
        expect(second).toBeGreaterThan(first)
        expect(await load()).toEqual({ state: "b", revision: second, head: 0 })
      })
      it("rejects a state at another revision, and names both", async () => {
        const actual = revisionOf(await one({ state: "a" }))
        for (const expected of [0, actual + 1]) {
          const outcome = await one({ state: "b", expected, append: itemsOf(1, 1), timer: 5 })
          expect(conflictOf(outcome)).toMatchObject({
            _tag: "RevisionConflict",
            key: "mailbox/alice",
            expected,
            actual
          })
        }
        expect(await load()).toEqual({ state: "a", revision: actual, head: 0 })
        expect(await read()).toEqual([])
        expect(await timers(shardOf(alice))).toEqual([])
      })
      it("rejects a removal at another revision", async () => {
        await one({ state: "a" })
        expect(conflictOf(await one({ state: null }))).toMatchObject({ _tag: "RevisionConflict" })
        expect((await load()).state).toBe("a")
      })
      it("compares the revision also when it only sets a timer", async () => {
        const revision = revisionOf(await one({ state: "a" }))
        expect(revisionOf(await one({ timer: 7, expected: revision }))).toBe(revision)
        expect(conflictOf(await one({ timer: 8, expected: revision + 1 }))).toMatchObject({
          _tag: "RevisionConflict"
        })
        expect(conflictOf(await one({ timer: 9, expected: 0 }))).toMatchObject({
          _tag: "RevisionConflict"
        })
      })
      it("distinguishes an empty state from none", async () => {
        const revision = revisionOf(await one({ state: "" }))
        expect(await load()).toEqual({ state: "", revision, head: 0 })
      })
      it("increases revisions across removals", async () => {
        const first = revisionOf(await one({ state: "a" }))
        expect(revisionOf(await one({ state: null, expected: first }))).toBe(0)
        expect(await load()).toEqual({ state: undefined, revision: 0, head: 0 })
        const second = revisionOf(await one({ state: "b" }))
        expect(second).toBeGreaterThan(first)
        expect(conflictOf(await one({ state: "c", expected: first }))).toMatchObject({
          _tag: "RevisionConflict"
        })
      })
    })

    logCases(probe)
    historyCases(probe)

    describe("timers", () => {
      const push = address("registration", "alice=1")
      const other = address("registration", "alice=2")
      it("stores at most one for each actor", async () => {
        await one({ timer: 1_000 })
        expect(await timers(shardOf(alice))).toEqual([{ address: alice, atMs: 1_000 }])
        await one({ timer: 2_000 })
        expect(await timers(shardOf(alice))).toEqual([{ address: alice, atMs: 2_000 }])
        await one({ append: itemsOf(1, 1) })
        expect(await timers(shardOf(alice))).toEqual([{ address: alice, atMs: 2_000 }])
        await one({ timer: null })
        expect(await timers(shardOf(alice))).toEqual([])
      })
      it("sets signals to others in the same commit", async () => {
        const outcome = await one({ state: "a", signals: [{ address: push, atMs: 5 }] })
        expect(shardOf(push)).toBe(shardOf(alice))
        const [signalRevision] = signalRevisionsOf(outcome)
        expect(await timers(shardOf(alice))).toEqual([{ address: push, atMs: 5, signalRevision }])
        expect(await load(push)).toEqual({ state: undefined, revision: 0, head: 0 })
      })
      it("reports a revision for each signal, in their order, that grows", async () => {
        const first = await one({
          signals: [{ address: push, atMs: 5 }, { address: other, atMs: 6 }]
        })
        const [ofPush = 0, ofBob] = signalRevisionsOf(first)
        const listed = await timers(shardOf(alice))
        expect(listed.map(({ signalRevision }) => signalRevision)).toEqual([ofPush, ofBob])
        const [next] = signalRevisionsOf(await one({ signals: [{ address: push, atMs: 7 }] }))
        expect(next).toBeGreaterThan(ofPush)
        expect(signalRevisionsOf(await one({ timer: 1 }))).toEqual([])
      })
      it("separates a signal from the actor's own timer, in order of time", async () => {
        await one({ address: push, timer: 7 })
        const [signalRevision] = signalRevisionsOf(
          await one({ signals: [{ address: push, atMs: 5 }], timer: 6 })
        )
        const signal = { address: push, atMs: 5, signalRevision }
        const all = [signal, { address: alice, atMs: 6 }, { address: push, atMs: 7 }]
        expect(await timers(shardOf(alice))).toEqual(all)
        const { hasMoreSignals, timers: first } = await earliest(shardOf(alice), 1)
        expect([first, hasMoreSignals]).toEqual([all.slice(0, 2), false])
        await one({ address: push, timer: null })
        expect(await timers(shardOf(alice))).toEqual(all.slice(0, 2))
        await one({ address: push, state: "a" })
        const { revision } = await load(push)
        await one({ address: push, state: null, expected: revision })
        expect(await timers(shardOf(alice))).toEqual(all.slice(0, 2))
        await one({ address: push, timer: 8, consumedSignal: signalRevision })
        expect(await timers(shardOf(alice))).toEqual([all[1], { address: push, atMs: 8 }])
        await reopen()
        // A timer that another node has just ended may be listed once more.
        await expect.poll(() => timers(shardOf(alice)))
          .toEqual([all[1], { address: push, atMs: 8 }])
      })
      it("removes a signal with the commit that names it, but no later signal", async () => {
        const set = async (atMs: number) => {
          const outcome = await one({ signals: [{ address: push, atMs }] })
          return signalRevisionsOf(outcome)[0] ?? 0
        }
        const first = await set(1)
        const second = await set(2)
        const left = { address: push, atMs: 2, signalRevision: second }
        await one({ address: push, consumedSignal: first })
        expect(await timers(shardOf(alice))).toEqual([left])
        await one({ address: push, consumedSignal: first, append: itemsOf(1, 1) })
        expect(await timers(shardOf(alice))).toEqual([left])
        expect(conflictOf(await one({ address: push, consumedSignal: second, expected: 77 })))
          .toMatchObject({ _tag: "RevisionConflict" })
        expect(await timers(shardOf(alice))).toEqual([left])
        await one({ address: push, consumedSignal: second })
        expect(await timers(shardOf(alice))).toEqual([])
        // In one group with the signal that replaces it, in either order.
        for (const isFirst of [true, false]) {
          const revision = await set(3)
          const both = [
            { address: push, consumedSignal: revision },
            { signals: [{ address: push, atMs: 4 }] }
          ]
          await commit(...isFirst ? both : both.toReversed())
          expect(await timers(shardOf(alice))).toMatchObject([{ address: push, atMs: 4 }])
        }
      })
      it("lists only the timers of a shard", async () => {
        const all = Array.from({ length: 300 }, (_, at) => address("session", `s${at}`))
        await commit(...all.map((of, at) => ({ address: of, timer: at })))
        const expected = all.flatMap((of, atMs) =>
          shardOf(of) === shardOf(alice) ? [{ address: of, atMs }] : []
        )
        expect(await timers(shardOf(alice))).toEqual(expected)
      })
      it("returns the earliest timers in order, page by page", async () => {
        const all = Array.from({ length: 1_500 }, (_, at) => ({
          address: address("session", `alice=${at}`),
          // Not in the order of the keys, and two at each time.
          timer: 10 + (at >> 1) * 7_919 % 750
        }))
        await commit(...all)
        const times = all.map(({ timer }) => timer).sort((a, b) => a - b)
        for (const limit of [1, 2, 3, 100, 749, 1_499, 1_500, 1_501]) {
          const { next, timers: found } = await earliest(shardOf(alice), limit)
          expect(found.map(({ atMs }) => atMs)).toEqual(times.slice(0, limit))
          if (limit !== 1_500) expect(next === undefined).toBe(limit > 1_500)
          const expected = new Map(all.map(({ address: { id }, timer }) => [id, timer]))
          for (const { address: { id }, atMs } of found) expect(expected.get(id)).toBe(atMs)
          expect(new Set(found.map(({ address: { id } }) => id)).size).toBe(found.length)
        }
        const paged: Array<StoredTimer> = []
        for (let from: TimerCursor | undefined;;) {
          const { next, timers: found } = await earliest(shardOf(alice), 400, from)
          paged.push(...found)
          if (next === undefined) break
          from = next
        }
        expect(paged.map(({ atMs }) => atMs)).toEqual(times)
        expect(new Set(paged.map(({ address: { id } }) => id)).size).toBe(1_500)
        const from = { atMs: times[700] ?? 0, after: "" }
        const { timers: rest } = await earliest(shardOf(alice), 100, from)
        const first = times.indexOf(from.atMs)
        expect(rest.map(({ atMs }) => atMs)).toEqual(times.slice(first, first + 100))
      })
      it("pages through many timers of one time", async () => {
        const all = Array.from({ length: 500 }, (_, at) => address("session", `alice=${at}`))
        await commit(...all.map((of) => ({ address: of, timer: 1_700_000_000_000 })))
        const ids = new Set<string>()
        for (let from: TimerCursor | undefined;;) {
          const { next, timers: found } = await earliest(shardOf(alice), 100, from)
          expect(found.length).toBeLessThanOrEqual(100)
          for (const { address: { id } } of found) ids.add(id)
          if (next === undefined) break
          from = next
        }
        expect(ids.size).toBe(500)
      })
      it("returns all that is due before a time, and where it continues", async () => {
        const dueMs = 1_700_000_000_000
        await one({ timer: dueMs })
        await one({ address: push, timer: dueMs + 86_400_000 })
        const page = await earliest(shardOf(alice), 10, undefined, dueMs + 1_000)
        expect(page.timers[0]).toMatchObject({ address: alice, atMs: dueMs })
        const rest = page.next === undefined
          ? []
          : (await earliest(shardOf(alice), 10, page.next)).timers
        expect([...page.timers, ...rest].map(({ address }) => address)).toEqual([alice, push])
        if (page.next !== undefined) expect(page.next.atMs).toBeGreaterThanOrEqual(dueMs + 1_000)
      })
      it("loads the timer with the actor, and moves it with any commit", async () => {
        const revision = revisionOf(await one({ state: "a", timer: 1_000 }))
        expect(await load()).toEqual({ state: "a", revision, head: 0, timer: 1_000 })
        await one({ expected: revision, timer: 3_000 })
        expect(await load()).toMatchObject({ state: "a", revision, timer: 3_000 })
        await one({ expected: revision, append: itemsOf(1, 1) })
        await one({ expected: revision, firedTimer: 3_000 })
        expect(await timers(shardOf(alice))).toEqual([{ address: alice, atMs: 3_000 }])
        await reopen()
        expect(await load()).toEqual({ state: "a", revision, head: 1, timer: 3_000 })
        await one({ expected: revision, timer: 2_000, firedTimer: 3_000 })
        await one({ expected: revision, firedTimer: 77 })
        // A timer that another node has just ended may be listed once more.
        await expect.poll(() => timers(shardOf(alice)))
          .toEqual([{ address: alice, atMs: 2_000 }])
        expect(await load()).toMatchObject({ state: "a", revision, timer: 2_000 })
        await one({ expected: revision, timer: null })
        expect(await load()).toEqual({ state: "a", revision, head: 1, timer: undefined })
        expect(await timers(shardOf(alice))).toEqual([])
      })
      it("returns an empty complete list for a shard without timers", async () => {
        expect(await earliest(shardOf(alice), 1))
          .toEqual({ timers: [], next: undefined, hasMoreSignals: false })
      })
      it("returns the durable timers while other commits are under way", async () => {
        const all = Array.from({ length: 2_000 }, (_, at) => address("session", `alice=${at}`))
        await commit(...all.map((of, at) => ({ address: of, timer: at })))
        const [{ timers: found }] = await Promise.all([
          earliest(shardOf(alice), 1_000),
          ...all.slice(1_000).map((of) => commit({ address: of, timer: null }))
        ])
        expect(found.map(({ atMs }) => atMs)).toEqual(Array.from({ length: 1_000 }, (_, at) => at))
      })
    })

    describe("scanning", () => {
      it("pages through the actors of a kind that have a state", async () => {
        const ids = ["a", "a=1", "a-b", "B", "a_", "z", "A0", "-", "="]
        await commit(...ids.map((id) => ({ address: address("mailbox", id), state: id })))
        await one({ address: address("mailbox", "log-only"), append: itemsOf(1, 1) })
        await one({ address: address("mailbox-x", "other"), state: "x" })
        await one({ address: address("mail", "other"), state: "x" })
        const sorted = [...ids].sort()
        expect(await scan("mailbox", undefined, 100)).toEqual(sorted)
        const paged: Array<string> = []
        for (;;) {
          const page = await scan("mailbox", paged.at(-1), 2)
          if (page.length === 0) break
          paged.push(...page)
        }
        expect(paged).toEqual(sorted)
      })
    })

    describe("groups", () => {
      it("decides each commit separately, in order", async () => {
        await one({ state: "a" })
        const outcomes = await commit(
          { address: bob, append: itemsOf(1, 2) },
          { state: "b" },
          { address: bob, append: itemsOf(2, 3) },
          { address: bob, append: itemsOf(3, 3) },
          { address: address("session", "s"), state: "s" }
        )
        expect(outcomes.map(({ _tag }) => _tag)).toEqual([
          "Committed",
          "Conflict",
          "Conflict",
          "Committed",
          "Committed"
        ])
        expect(await numbers(bob)).toEqual([1, 2, 3])
        expect((await load()).state).toBe("a")
      })
      it("accepts an empty group", async () => {
        expect(await commit()).toEqual([])
      })
      it("accepts a large group", async () => {
        const value = "v".repeat(5_000)
        const outcomes = await commit(...Array.from({ length: 3_000 }, (_, at) => ({
          address: address("mailbox", `m${at}`),
          state: `${at}`,
          append: [{ n: 1, value }],
          head: 1
        })))
        expect(outcomes.every(({ _tag }) => _tag === "Committed")).toBe(true)
        expect(await read(1, 1, address("mailbox", "m2999"))).toEqual([{
          n: 1,
          value
        }])
      })
      it("serializes concurrent groups", async () => {
        const groups = await Promise.all(
          Array.from({ length: 50 }, () => commit({ append: itemsOf(1, 1) }, { timer: 1 }))
        )
        const first = groups.map(([outcome]) => outcome?._tag)
        expect(first.filter((tag) => tag === "Committed")).toHaveLength(1)
        expect(await numbers()).toEqual([1])
      })
      it("preserves the order of groups that were not awaited", async () => {
        const groups = Array.from(
          { length: 200 },
          (_, at) => commit({ append: itemsOf(at + 1, at + 1) })
        )
        for (const [outcome] of await Promise.all(groups)) revisionOf(outcome)
        expect(await numbers()).toEqual(Array.from({ length: 200 }, (_, at) => at + 1))
      })
    })

    it("returns everything after a restart", async () => {
      const revision = revisionOf(
        await one({ state: "state", append: itemsOf(1, 40), head: 40, timer: 77 })
      )
      await one({ expected: revision, append: itemsOf(41, 50) })
      await one({ address: bob, append: itemsOf(1, 2) })
      await reopen()
      expect(await load()).toEqual({ state: "state", revision, head: 50, timer: 77 })
      expect(await read()).toEqual(itemsOf(1, 50))
      expect(await timers(shardOf(alice))).toEqual([{ address: alice, atMs: 77 }])
      expect(conflictOf(await one({ expected: revision, append: itemsOf(50, 51) })))
        .toMatchObject({ item: 50 })
      expect(conflictOf(await one({ state: "x" }))).toMatchObject({ actual: revision })
      expect(revisionOf(await one({ state: "next", expected: revision, head: 50 })))
        .toBeGreaterThan(
          revision
        )
      expect(await numbers(bob)).toEqual([1, 2])
    })

    it("stores any text", async () => {
      const texts = [
        "",
        "\n",
        "0 0 0\n",
        "\u0000",
        "žluťoučký 🐎 ﷽",
        "\r\n<a>&amp;</a>",
        "x".repeat(1e6)
      ]
      for (const [at, text] of texts.entries()) {
        const to = address("mailbox", `text${at}`)
        await one({ address: to, state: text, append: [{ n: 1, value: text }], head: 1 })
      }
      await one({ address: bob, state: "a\ud800b" })
      await reopen()
      for (const [at, text] of texts.entries()) {
        const to = address("mailbox", `text${at}`)
        expect((await load(to)).state).toBe(text)
        expect(await read(1, 1, to)).toEqual([{ n: 1, value: text }])
      }
      expect(["a\ud800b", "a\ufffdb"]).toContain((await load(bob)).state)
    })

    it("accepts ids of every allowed form", async () => {
      const ids = ["x".repeat(200), "=", "a=b=c", "-_-", "0"]
      await commit(...ids.map((id) => ({
        address: address("m-x", id),
        state: id,
        timer: 1,
        append: itemsOf(1, 1),
        head: 1
      })))
      for (const id of ids) {
        const to = address("m-x", id)
        expect((await load(to)).state).toBe(id)
        expect(await timers(shardOf(to))).toContainEqual({ address: to, atMs: 1 })
      }
    })

    it("is healthy", () => probe.health())
  })
}
