/** An actor starts from one consistent moment, also when commits land during the load. */
import { Effect } from "effect"
import { afterEach, expect, it } from "vitest"
import { makeMemoryStorage } from "../../runtime/memory/storage.ts"
import type { StorageApi } from "../../runtime/ports/storage.ts"
import { at, probe } from "./probe.ts"
import { dropAll, start } from "./rig.ts"

afterEach(dropAll)

it("a commit between the reads of record and log is visible in both", async () => {
  const inner = makeMemoryStorage()
  const of = at("a")
  const kept = {
    address: of,
    state: undefined,
    remove: [],
    timer: undefined,
    signals: [],
    consumedSignal: undefined,
    firedTimer: undefined
  }
  const note = (n: number, value: string) =>
    Effect.runPromise(inner.commit([{ ...kept, expected: 0, head: n, append: [{ n, value }] }]))
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
