/** Deferred timers: stored at one time, and fired on this node at another. */
import { Effect } from "effect"
import { afterEach, describe, expect, it } from "vitest"
import { become, shardOf, stay } from "../../runtime/index.ts"
import { makeMemoryStorage } from "../../runtime/memory/storage.ts"
import type { StorageApi } from "../../runtime/ports/storage.ts"
import { dropAll, fails, type Rig, scripted, start, turns } from "./rig.ts"
import { at, type Cell, doing, scriptedActor, type State } from "./scripted-actor.ts"

afterEach(dropAll)

const pass = async (rig: Rig, ms: number): Promise<void> => {
  for (let left = ms; left > 0; left -= 10) {
    await rig.pass(10)
    await turns(3)
  }
}

const storedMs = async (storage: StorageApi, id = "a"): Promise<number | undefined> =>
  (await Effect.runPromise(storage.timers(shardOf(at(id)), 10))).timers
    .find((timer) => timer.address.id === id)?.atMs

/** Attempts now, and defers the timer for as long as one attempt may take. */
const attempt: Cell = (state, { nowMs }) =>
  become<State>({ ...state, tries: state.tries + 1 }).setTimer(nowMs).deferTimer(nowMs + 300)
const cells = { attempt, done: () => stay<State>().setTimer(null).reply("done") }

describe("a deferred timer", () => {
  it("is stored at its time, and fires when the deferral is over", async () => {
    const storage = makeMemoryStorage()
    const { behavior, firedAtMs } = scriptedActor({ ...cells, TimerFired: attempt })
    const rig = await start({ behaviors: [behavior] }, { storage, virtualTime: true })
    await pass(rig, 50)
    await doing(rig, "attempt")
    expect(await storedMs(storage)).toBe(50)
    await pass(rig, 290)
    expect(firedAtMs).toEqual([])
    await pass(rig, 20)
    expect(firedAtMs.length).toBe(1)
    // The attempt that the timer begins defers it too.
    await pass(rig, 280)
    expect(firedAtMs.length).toBe(1)
    await doing(rig, "done")
    await pass(rig, 400)
    expect(firedAtMs.length).toBe(1)
    expect(await storedMs(storage)).toBeUndefined()
  })

  it("fires at once on the next owner", async () => {
    const storage = makeMemoryStorage()
    const first = scriptedActor(cells)
    const crashed = await start({ behaviors: [first.behavior] }, { storage, virtualTime: true })
    await doing(crashed, "attempt")
    await crashed.drop()
    const { behavior, firedAtMs } = scriptedActor({ TimerFired: attempt })
    const rig = await start({ behaviors: [behavior] }, { storage, virtualTime: true })
    await pass(rig, 30)
    expect(firedAtMs.length).toBe(1)
    expect(first.firedAtMs).toEqual([])
  })

  it("by a decision that writes nothing has not ended, and nothing is written", async () => {
    const storage = scripted()
    const { behavior, firedAtMs } = scriptedActor({
      set: () => stay<State>().setTimer(100).reply("set"),
      TimerFired: (_, { nowMs }) =>
        nowMs < 200 ? stay<State>().deferTimer(250) : stay<State>().setTimer(null)
    })
    const rig = await start({ behaviors: [behavior] }, { storage, virtualTime: true })
    await doing(rig, "set")
    await pass(rig, 200)
    expect([firedAtMs.length, storage.groups.length, await storedMs(storage)]).toEqual([1, 1, 100])
    await pass(rig, 80)
    expect([firedAtMs.length, storage.groups.length]).toEqual([2, 2])
    expect(await storedMs(storage)).toBeUndefined()
  })

  it("is deferred by a decision that waits for a commit before it", async () => {
    const storage = scripted()
    const { behavior, firedAtMs } = scriptedActor({
      set: () => stay<State>().setTimer(0).reply("set"),
      hold: () => stay<State>().deferTimer(200).reply("held")
    })
    const rig = await start({ behaviors: [behavior] }, { storage, virtualTime: true })
    storage.gate.close()
    const both = [doing(rig, "set"), doing(rig, "hold")]
    await turns()
    storage.gate.open()
    expect(await Promise.all(both)).toEqual(["set", "held"])
    await pass(rig, 190)
    expect(firedAtMs).toEqual([])
    await pass(rig, 30)
    expect(firedAtMs.length).toBe(1)
  })

  it("is replaced by a timer that is set later", async () => {
    const { behavior, firedAtMs } = scriptedActor({
      ...cells,
      soon: (_, { nowMs }) => stay<State>().setTimer(nowMs + 50).reply("soon")
    })
    const rig = await start({ behaviors: [behavior] }, { virtualTime: true })
    await doing(rig, "attempt")
    await doing(rig, "soon")
    await pass(rig, 80)
    expect(firedAtMs.length).toBe(1)
  })

  it("whose commit is lost is deferred by the repeated decision, or fires", async () => {
    const storage = scripted()
    const limits = { reloadDelayMs: 1 }
    const { behavior, firedAtMs } = scriptedActor({
      ...cells,
      TimerFired: (_, { nowMs }) => stay<State>().deferTimer(nowMs + 300)
    })
    const rig = await start({ behaviors: [behavior], limits }, { storage, virtualTime: true })
    storage.acts.push(fails)
    const again = doing(rig, "attempt")
    await pass(rig, 100)
    expect(await again).toBeUndefined()
    // The lost commit may fire it once more.
    expect(firedAtMs.length).toBeLessThanOrEqual(1)
    await pass(rig, 320)
    const before = firedAtMs.length
    expect(before).toBeGreaterThanOrEqual(1)
    storage.acts.push(fails, fails, fails)
    const lost = doing(rig, "attempt")
    await pass(rig, 100)
    expect(await lost).toBe("StorageUnavailable")
    await pass(rig, 320)
    expect(firedAtMs.length).toBeGreaterThan(before)
  })

  it("does not defer a signal, and stays deferred after it", async () => {
    const storage = makeMemoryStorage()
    const { behavior, firedAtMs } = scriptedActor({
      hold: () => stay<State>().deferTimer(400).reply("held"),
      poke: () => stay<State>().signal(at("a")).reply("poked")
    })
    const rig = await start({ behaviors: [behavior] }, { storage, virtualTime: true })
    await doing(rig, "poke", "a=b")
    await doing(rig, "hold")
    await pass(rig, 130)
    expect(firedAtMs.length).toBe(1)
    await pass(rig, 250)
    expect(firedAtMs.length).toBe(1)
    await pass(rig, 50)
    expect(firedAtMs.length).toBe(2)
    // Also in the other order, with the deferral first.
    const late = scriptedActor({
      hold: (_, { nowMs }) => stay<State>().deferTimer(nowMs + 100).reply("held"),
      poke: () => stay<State>().signal(at("a")).reply("poked")
    })
    const other = await start({ behaviors: [late.behavior] }, { virtualTime: true })
    await doing(other, "hold")
    await doing(other, "poke", "a=b")
    await pass(other, 130)
    expect(late.firedAtMs.length).toBe(2)
  })

  it("without end is a defect", async () => {
    const { behavior } = scriptedActor({
      ever: () => stay<State>().deferTimer(Number.POSITIVE_INFINITY)
    })
    const rig = await start({ behaviors: [behavior] })
    expect(await doing(rig, "ever")).toBe("ActorDefect")
  })
})

it("an actor's own timer fires after a signal", async () => {
  const { behavior, firedAtMs } = scriptedActor({
    set: () => stay<State>().setTimer(300).reply("set"),
    poke: () => stay<State>().signal(at("a")).reply("poked")
  })
  const rig = await start({ behaviors: [behavior] }, { virtualTime: true })
  await doing(rig, "set")
  await doing(rig, "poke", "a=b")
  await pass(rig, 250)
  expect(firedAtMs.length).toBe(1)
  await pass(rig, 80)
  expect(firedAtMs.length).toBe(2)
})
