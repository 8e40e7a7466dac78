/** An actor starts from one consistent moment, also when commits land during the load. */
import { Effect } from "effect"
import { afterEach, expect, it } from "vitest"
import { makeMemoryStorage } from "../../runtime/memory/storage.ts"
import type { StorageApi } from "../../runtime/ports/storage.ts"
import { commitOf } from "../suites/commit.ts"
import { at, probe } from "./probe.ts"
import { dropAll, start } from "./rig.ts"

afterEach(dropAll)

it("a commit between the reads of record and log is visible in both", async () => {
  const inner = makeMemoryStorage()
  const of = at("a")
  const note = (n: number, value: string) =>
    Effect.runPromise(inner.commit([commitOf({ address: of, head: n, append: [{ n, value }] })]))
  await note(1, "first")
  let reads = 0
  const storage: StorageApi = {
    ...inner,
    read: (address, from, limit) =>
      Effect.flatMap(
        Effect.promise(async () => {
          // The commit timed out at its node, and lands now.
          if (reads++ === 0) await note(2, "second")
        }),
        () => inner.read(address, from, limit)
      )
  }
  const recall = {
    items: 10,
    keyOf: (value: string) => value,
    restore: <State>(state: State) => state
  }
  const rig = await start({ behaviors: [{ ...probe(), recall }] }, { storage })
  const repeated = await rig.ask(of, { _tag: "Note", text: "second" })
  expect(repeated).toEqual({ count: 0, head: 2, seen: 2 })
  expect(await rig.ask(of, { _tag: "Read" })).toEqual({ count: 0, head: 2 })
  expect(reads).toBe(2)
})

/** A behavior that notes what it recalls, and a store that counts what it returns. */
const countingRecall = (restoresInParts: boolean) => {
  const inner = makeMemoryStorage()
  const counts = { largestChars: 0, reads: 0, inFlight: 0, mostInFlight: 0 }
  const restored: Array<ReadonlyArray<number>> = []
  const storage: StorageApi = {
    ...inner,
    read: (...parameters) =>
      Effect.gen(function*() {
        counts.reads++
        counts.mostInFlight = Math.max(counts.mostInFlight, ++counts.inFlight)
        yield* Effect.yieldNow
        const items = yield* inner.read(...parameters)
        counts.inFlight--
        const chars = items.reduce((sum, { value }) => sum + value.length, 0)
        counts.largestChars = Math.max(counts.largestChars, chars)
        return items
      })
  }
  const recall = {
    items: 50,
    keyOf: (value: string) => value.trimEnd(),
    restoresInParts,
    restore: <State>(state: State, items: ReadonlyArray<{ readonly n: number }>) => {
      restored.push(items.map(({ n }) => n))
      return state
    }
  }
  return { inner, counts, restored, storage, behaviors: [{ ...probe(), recall }] }
}

const itemChars = 1_000

/** Stores an actor with 80 items. */
const fill = (inner: StorageApi, id: string) =>
  Effect.runPromise(inner.commit([commitOf({
    address: at(id),
    head: 80,
    append: Array.from({ length: 80 }, (_, index) => ({
      n: index + 1,
      value: `note ${index + 1}`.padEnd(itemChars)
    }))
  })]))

const limits = { recallCharsMax: 5 * itemChars, recallReadsMax: 2 }

it("an actor reads no more of its log than the state of its record needs", async () => {
  const { behaviors: [behavior], counts, inner, restored, storage } = countingRecall(true)
  if (behavior === undefined) throw new Error("there is no behavior")
  for (const [id, first, found] of [["a", 79, [79, 80]], ["b", Infinity, []]] as const) {
    await fill(inner, id)
    counts.largestChars = 0
    restored.length = 0
    const recall = { ...behavior.recall, firstOf: () => first }
    const rig = await start({ behaviors: [{ ...behavior, recall }] }, { storage })
    await rig.ask(at(id), { _tag: "Read" })
    expect([restored.flat(), counts.largestChars]).toEqual([found, found.length * itemChars])
  }
})

it.each([true, false])("an actor reads its log in parts (restored in parts: %s)", async (parts) => {
  const { behaviors, counts, inner, restored, storage } = countingRecall(parts)
  await fill(inner, "a")
  const rig = await start({ behaviors, limits }, { storage })
  for (const n of [31, 55, 80]) {
    expect(await rig.ask(at("a"), { _tag: "Note", text: `note ${n}` })).toMatchObject({ seen: n })
  }
  expect(await rig.ask(at("a"), { _tag: "Note", text: "note 30" }))
    .toEqual({ count: 0, head: 81 })
  expect(counts.largestChars).toBe(limits.recallCharsMax)
  expect(restored.flat()).toEqual(Array.from({ length: 50 }, (_, index) => 31 + index))
  expect(restored.length).toBe(parts ? 10 : 1)
})

it("actors that start at once share the reads of their stream", async () => {
  const { behaviors, counts, inner, storage } = countingRecall(true)
  const ids = ["a", "b", "c", "d", "e", "f"]
  for (const id of ids) await fill(inner, id)
  const rig = await start({ behaviors, limits }, { storage })
  const replies = await Promise.all(ids.map((id) => rig.ask(at(id), { _tag: "Read" })))
  expect(replies).toEqual(ids.map(() => ({ count: 0, head: 80 })))
  expect(counts.mostInFlight).toBe(limits.recallReadsMax)
})

it("an actor whose log grows between two parts is read again", async () => {
  const { behaviors, counts, inner, storage } = countingRecall(true)
  await fill(inner, "a")
  const later: StorageApi = {
    ...storage,
    read: (...parameters) =>
      Effect.gen(function*() {
        const items = yield* storage.read(...parameters)
        if (counts.reads !== 4) return items
        const commit = commitOf({
          address: at("a"),
          head: 81,
          append: [{ n: 81, value: "late" }]
        })
        yield* inner.commit([commit])
        return items
      })
  }
  const rig = await start({ behaviors, limits }, { storage: later })
  expect(await rig.ask(at("a"), { _tag: "Note", text: "late" }))
    .toEqual({ count: 0, head: 81, seen: 81 })
})
