/** `askNew` does not load the actor; if the actor exists, the conflict makes it load. */
import { Effect } from "effect"
import { afterEach, expect, it } from "vitest"
import { makeMemoryStorage } from "../../runtime/memory/storage.ts"
import { at } from "./probe.ts"
import { dropAll, fails, scripted, start } from "./rig.ts"

afterEach(dropAll)

const add = { _tag: "Add", by: 1 } as const

it("decides and commits without a load", async () => {
  const storage = scripted()
  const rig = await start({}, { storage })
  // The store answers no read, so a load would hang.
  storage.loads.act = () => Effect.never
  expect(await Effect.runPromise(rig.system.askNew(at("new"), add))).toMatchObject({ count: 1 })
  expect(storage.loads.count).toBe(0)
  expect(storage.groups[0]?.[0]).toMatchObject({ expected: 0, append: [] })
  const note = { _tag: "Note", text: "x" } as const
  await rig.ask(at("new"), note)
  expect(await rig.ask(at("new"), note)).toMatchObject({ seen: 1 })
})

it("is loaded if it exists, and loses nothing", async () => {
  const storage = makeMemoryStorage()
  const before = await start({}, { storage })
  await before.ask(at("old"), { _tag: "Add", by: 41 })
  await before.drop()
  const rig = await start({}, { storage })
  expect(await Effect.runPromise(rig.system.askNew(at("old"), add))).toMatchObject({ count: 42 })
})

it("is asked like any other once it is in memory, or when its commit was lost", async () => {
  const storage = scripted()
  const rig = await start({}, { storage })
  await rig.ask(at("a"), add)
  expect(await Effect.runPromise(rig.system.askNew(at("a"), add))).toMatchObject({ count: 2 })
  storage.acts.push(fails)
  expect(await Effect.runPromise(rig.system.askNew(at("b"), add))).toMatchObject({ count: 1 })
})
