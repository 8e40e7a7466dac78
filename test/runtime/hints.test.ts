/** The number that an actor sends with a signal. */
import { Effect } from "effect"
import { afterEach, describe, expect, it } from "vitest"
import { decodeStoredState } from "../../runtime/actor/format.ts"
import { makeMemoryStorage } from "../../runtime/memory/storage.ts"
import type { StorageApi } from "../../runtime/ports/storage.ts"
import { at, type State } from "./probe.ts"
import { dropAll, fails, type Rig, scripted, start, turns } from "./rig.ts"

afterEach(dropAll)

const other = "a=b"
const signal = (hint?: number) =>
  ({ _tag: "Signal", id: other, ...hint === undefined ? {} : { hint } }) as const

type Idle = Extract<State, { readonly _tag: "Idle" }>

const stateOf = async (storage: StorageApi): Promise<Idle | undefined> => {
  const { state } = await Effect.runPromise(storage.load(at(other)))
  // The record of a probe.
  const known = state === undefined
    ? undefined
    : JSON.parse(decodeStoredState(state).text) as State
  return known?._tag === "Idle" ? known : undefined
}

const hintsOf = async (storage: StorageApi): Promise<ReadonlyArray<number | null>> =>
  (await stateOf(storage))?.hints ?? []

const pass = async (rig: Rig, ms: number): Promise<void> => {
  for (let left = ms; left > 0; left -= 10) {
    await rig.pass(Math.min(10, left))
    await turns(3)
  }
}

/** A rig whose `lose` sends a signal that no attempt can store. */
const startScripted = async () => {
  const storage = scripted()
  const rig = await start({ limits: { reloadDelayMs: 1 } }, { storage, virtualTime: true })
  const lose = async (): Promise<void> => {
    storage.acts.push(fails, fails, fails)
    const lost = rig.ask(at("a"), signal(4))
    for (let tries = 0; tries < 3; tries++) {
      await turns()
      await rig.pass(1)
    }
    expect(await lost).toBe("StorageUnavailable")
  }
  return { lose, rig, storage }
}

describe("a hint", () => {
  it("arrives with the signal, and not with the actor's own timer", async () => {
    const storage = makeMemoryStorage()
    const rig = await start({}, { storage, virtualTime: true })
    await rig.ask(at("a"), signal(7))
    await pass(rig, 100)
    await rig.ask(at(other), { _tag: "SetTimer", atMs: 200 })
    await pass(rig, 150)
    expect(await hintsOf(storage)).toEqual([7, null])
  })

  it("is the greatest of several, or none if one signal has none", async () => {
    const storage = makeMemoryStorage()
    const rig = await start({}, { storage, virtualTime: true })
    await Promise.all([3, 9, 5].map((hint) => rig.ask(at("a"), signal(hint))))
    await pass(rig, 100)
    await Promise.all([rig.ask(at("a"), signal(3)), rig.ask(at("a"), signal())])
    await pass(rig, 100)
    expect(await hintsOf(storage)).toEqual([9, null])
  })

  it("is lost in a restart", async () => {
    const storage = makeMemoryStorage()
    const before = await start({}, { storage, virtualTime: true })
    await before.ask(at("a"), signal(7))
    await before.drop()
    const rig = await start({}, { storage, virtualTime: true })
    await pass(rig, 100)
    expect(await hintsOf(storage)).toEqual([null])
  })

  it("of a lost commit is dropped, and with it the hint of the next signal", async () => {
    const { lose, rig, storage } = await startScripted()
    await lose()
    await rig.ask(at("a"), signal(5))
    await pass(rig, 100)
    expect(await hintsOf(storage)).toEqual([null])
    await rig.ask(at("a"), signal(6))
    await pass(rig, 100)
    expect(await hintsOf(storage)).toEqual([null, 6])
  })

  it("of a lost commit proves nothing, unless it comes with that of a durable one", async () => {
    const { lose, rig, storage } = await startScripted()
    await lose()
    await pass(rig, 100)
    expect((await stateOf(storage))?.durableSignals).toEqual([false])
    await lose()
    await rig.ask(at("a"), signal(5))
    await pass(rig, 100)
    expect((await stateOf(storage))?.durableSignals).toEqual([false, true])
  })
})
