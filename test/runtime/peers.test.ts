/** The context of cells and effects, and states that are not committed. */
import { Effect } from "effect"
import { decodeStoredState } from "../../runtime/actor/format.ts"
import { afterEach, describe, expect, it } from "vitest"
import { address, become, stay } from "../../runtime/index.ts"
import { at as probeAt, probe } from "./probe.ts"
import { dropAll, fails, scripted, start, until } from "./rig.ts"
import { at, type Cell, doing, scriptedActor, type State } from "./scripted-actor.ts"

afterEach(dropAll)

it("a volatile part of a state stays in memory without a commit, until a reload", async () => {
  const storage = scripted()
  const { behavior } = scriptedActor({
    begin: (state) => stay<State>().becomeInMemory({ ...state, underWay: "x" }).reply("begun"),
    count: (state) => become<State>({ ...state, tries: state.tries + 1 }).reply(state.underWay),
    look: ({ underWay }) => stay<State>().reply(underWay ?? "nothing")
  })
  const rig = await start({ behaviors: [behavior], limits: { reloadDelayMs: 1 } }, { storage })
  expect(await doing(rig, "begin")).toBe("begun")
  expect(await doing(rig, "look")).toBe("x")
  expect(storage.groups).toEqual([])
  expect(await doing(rig, "count")).toBe("x")
  expect(decodeStoredState(storage.groups[0]?.[0]?.state ?? "").text).toBe("1")
  expect(await doing(rig, "look")).toBe("x")
  storage.acts.push(fails)
  expect(await doing(rig, "count")).toBeUndefined()
  expect(await doing(rig, "look")).toBe("nothing")
})

it("a cell knows its own address", async () => {
  const { behavior } = scriptedActor({ self: (_, { self }) => stay<State>().reply(self) })
  const rig = await start({ behaviors: [behavior] })
  expect(await doing(rig, "self", "me")).toEqual(at("me"))
})

describe("an effect", () => {
  const work: Cell = (state) => become(state).perform({ _tag: "Work" } as const).reply("working")

  it("asks other actors and reads their logs", async () => {
    const found: Array<unknown> = []
    const { behavior } = scriptedActor({ work }, (self, peers) =>
      Effect.gen(function*() {
        found.push(self, yield* peers.ask(probeAt("p"), { _tag: "Note", text: "hello" }))
        found.push(yield* peers.read(probeAt("p"), 1, 10))
        found.push(yield* Effect.flip(peers.ask(address("nobody", "p"), { _tag: "Read" })))
      }).pipe(Effect.ignore))
    const rig = await start({ behaviors: [behavior, probe()] })
    await doing(rig, "work")
    await until(() => found.length === 4)
    expect(found).toMatchObject([
      at("a"),
      { count: 0, head: 1 },
      [{ n: 1, value: "hello" }],
      { _tag: "UnknownMessage" }
    ])
  })

  it("may still ask while its node drains, which waits for it", async () => {
    const found: Array<unknown> = []
    const { behavior } = scriptedActor({ work }, (_, peers) =>
      Effect.sleep(50).pipe(
        Effect.andThen(peers.ask(probeAt("p"), { _tag: "Add", by: 2 })),
        Effect.map((reply) => void found.push(reply)),
        Effect.ignore
      ))
    const rig = await start({ behaviors: [behavior, probe()] })
    await doing(rig, "work")
    const drained = Effect.runPromise(rig.system.drain)
    expect(await rig.ask(probeAt("p"), { _tag: "Read" })).toBe("Overloaded")
    await drained
    expect(found).toEqual([{ count: 2, head: 0 }])
  })
})
