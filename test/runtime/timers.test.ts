/** Timers and signals are durable, and repeat unfinished effects. */
import { Effect } from "effect"
import { afterEach, describe, expect, it } from "vitest"
import { shardOf } from "../../runtime/index.ts"
import { decodeStoredState } from "../../runtime/actor/format.ts"
import { makeMemoryStorage } from "../../runtime/memory/storage.ts"
import type { StorageApi } from "../../runtime/ports/storage.ts"
import { at, probe, type State, type Work } from "./probe.ts"
import { dropAll, fails, keptAndHangs, type Rig, scripted, start, turns, until } from "./rig.ts"

afterEach(dropAll)

const add = { _tag: "Add", by: 1 } as const

const stateOf = async (storage: StorageApi, id = "a"): Promise<State | undefined> => {
  const { state } = await Effect.runPromise(storage.load(at(id)))
  // The record of a probe.
  return state === undefined
    ? undefined
    : JSON.parse(decodeStoredState(state).text) as State
}

const wokenMs = async (storage: StorageApi, id = "a"): Promise<ReadonlyArray<number>> => {
  const state = await stateOf(storage, id)
  return state?._tag === "Idle" ? state.wokenMs : []
}

const timersOf = async (storage: StorageApi, id = "a") =>
  (await Effect.runPromise(storage.timers(shardOf(at(id)), 1_000))).timers

/** Advances virtual time in small steps, so that its effects can run in between. */
const pass = async (rig: Rig, ms: number): Promise<void> => {
  for (let left = ms; left > 0; left -= 10) {
    await rig.pass(Math.min(10, left))
    await turns(3)
  }
}

describe("a timer", () => {
  it("is stored with its state, and cleared by the decision on it", async () => {
    const storage = scripted()
    const rig = await start({}, { storage, virtualTime: true })
    await rig.ask(at("a"), { _tag: "SetTimer", atMs: 500 })
    expect(storage.groups[0]?.[0]).toMatchObject({ timer: 500, expected: 0 })
    expect(await timersOf(storage)).toEqual([{ address: at("a"), atMs: 500 }])
    await pass(rig, 490)
    expect(await wokenMs(storage)).toEqual([])
    await pass(rig, 30)
    const firedAtMs = await wokenMs(storage)
    expect(firedAtMs.length).toBe(1)
    expect(firedAtMs[0]).toBeGreaterThanOrEqual(500)
    expect(firedAtMs[0]).toBeLessThanOrEqual(520)
    expect(storage.groups.at(-1)?.[0]).toMatchObject({ timer: null })
    expect(storage.groups.at(-1)?.[0]?.state).toBeDefined()
    expect(await timersOf(storage)).toEqual([])
    expect(rig.system.snapshot().timers).toBe(0)
  })

  it("fires after a restart, at once if it is overdue", async () => {
    const storage = makeMemoryStorage()
    const before = await start({}, { storage, virtualTime: true })
    await before.ask(at("a"), { _tag: "SetTimer", atMs: 300 })
    await before.drop()
    const rig = await start({}, { storage, virtualTime: true })
    await pass(rig, 320)
    expect((await wokenMs(storage)).length).toBe(1)
  })

  it("is replaced by a later one, without effect on the shard's other actors", async () => {
    const storage = makeMemoryStorage()
    const rig = await start({}, { storage, virtualTime: true })
    await rig.ask(at("a"), { _tag: "SetTimer", atMs: 100 })
    await rig.ask(at("a"), { _tag: "SetTimer", atMs: 400 })
    await rig.ask(at("a=b"), { _tag: "SetTimer", atMs: 200 })
    await pass(rig, 300)
    expect(await wokenMs(storage)).toEqual([])
    expect((await wokenMs(storage, "a=b")).length).toBe(1)
    await pass(rig, 120)
    expect((await wokenMs(storage)).length).toBe(1)
  })

  it("that fired is not over while a message before it has set another", async () => {
    const storage = scripted()
    const rig = await start({}, { storage, virtualTime: true })
    await rig.ask(at("a"), { _tag: "SetTimer", atMs: 100 })
    storage.gate.close()
    const put = rig.ask(at("a"), { _tag: "SetTimer", atMs: 500 })
    await turns()
    await pass(rig, 120)
    storage.gate.open()
    await put
    await turns()
    expect((await wokenMs(storage)).length).toBe(1)
    expect(await timersOf(storage)).toEqual([{ address: at("a"), atMs: 500 }])
    await pass(rig, 420)
    expect((await wokenMs(storage)).length).toBe(2)
  })

  it("whose decision cannot be stored fires again", async () => {
    const storage = scripted()
    const limits = { reloadDelayMs: 1 }
    const rig = await start({ limits }, { storage, virtualTime: true })
    await rig.ask(at("a"), { _tag: "SetTimer", atMs: 100 })
    storage.acts.push(fails, fails, fails)
    await pass(rig, 200)
    expect(await wokenMs(storage)).toEqual([])
    await pass(rig, 1_100)
    expect((await wokenMs(storage)).length).toBe(1)
  })

  it("set by a stored commit without an answer fires too", async () => {
    const storage = scripted()
    const limits = { storageDeadlineMs: 50, reloadDelayMs: 1 }
    const rig = await start({ limits }, { storage, virtualTime: true })
    storage.acts.push(keptAndHangs)
    const asked = rig.ask(at("a"), { _tag: "SetTimer", atMs: 200 })
    await turns()
    await pass(rig, 60)
    expect(await asked).toBe("StorageUnavailable")
    await pass(rig, 200)
    expect((await wokenMs(storage)).length).toBe(1)
  })

  it("of a removed actor is removed; one without a record is cleared", async () => {
    const storage = makeMemoryStorage()
    const rig = await start({}, { storage, virtualTime: true })
    await rig.ask(at("a"), { _tag: "SetTimer", atMs: 100 })
    await rig.ask(at("a"), { _tag: "Vanish" })
    expect(await timersOf(storage)).toEqual([])
    await pass(rig, 150)
    expect(await stateOf(storage)).toBeUndefined()
  })

  it("follows the clock when it jumps", async () => {
    const storage = makeMemoryStorage()
    const rig = await start({}, { storage, virtualTime: true })
    await rig.ask(at("a"), { _tag: "SetTimer", atMs: 3_600_000 })
    await rig.pass(3_600_000)
    await until(async () => (await wokenMs(storage)).length === 1)
  })

  it("at no time is a defect", async () => {
    const rig = await start()
    expect(await rig.ask(at("a"), { _tag: "SetTimer", atMs: Number.NaN })).toBe("ActorDefect")
  })

  it("fires in batches when many are due", async () => {
    const storage = makeMemoryStorage()
    const rig = await start({ limits: { timerBatchMax: 10 } }, { storage, virtualTime: true })
    const ids = Array.from({ length: 35 }, (_, n) => `w${n}`)
    await Promise.all(ids.map((id) => rig.ask(at(id), { _tag: "SetTimer", atMs: 50 })))
    await rig.pass(50)
    await turns()
    expect(rig.system.snapshot().timers).toBe(25)
    await pass(rig, 60)
    expect(rig.system.snapshot().timers).toBe(0)
  })
})

describe("a signal to another actor", () => {
  it("fires after the commit that set it", async () => {
    const storage = scripted()
    const rig = await start({}, { storage, virtualTime: true })
    await rig.ask(at("a"), { _tag: "Signal", id: "a=b" })
    expect(storage.groups[0]?.[0]?.signals).toMatchObject([{ address: at("a=b"), atMs: 0 }])
    await pass(rig, 130)
    expect((await wokenMs(storage, "a=b")).length).toBe(1)
    expect(await timersOf(storage)).toEqual([])
  })

  it("is not removed by a decision of the other that has not seen it", async () => {
    const storage = scripted()
    const rig = await start({}, { storage, virtualTime: true })
    await rig.ask(at("a=b"), { _tag: "SetTimer", atMs: 10_000 })
    await rig.ask(at("a=b"), { _tag: "Read" })
    // Both in one group, in either order: its own clearing must not win.
    const both = [
      rig.ask(at("a"), { _tag: "Signal", id: "a=b" }),
      rig.ask(at("a=b"), { _tag: "Worked" })
    ]
    await Promise.all(both)
    expect(await timersOf(storage)).toMatchObject([{ address: at("a=b"), atMs: 0 }])
    await pass(rig, 100)
    expect((await wokenMs(storage, "a=b")).length).toBe(1)
    expect(await timersOf(storage)).toEqual([])
    await rig.ask(at("a=b"), { _tag: "SetTimer", atMs: 5_000 })
    expect(await timersOf(storage)).toEqual([{ address: at("a=b"), atMs: 5_000 }])
  })

  it("does not change the other's own timer, and ends after the decision", async () => {
    const storage = scripted()
    const rig = await start({}, { storage, virtualTime: true })
    await rig.ask(at("a=b"), { _tag: "SetTimer", atMs: 5_000 })
    await rig.ask(at("a"), { _tag: "Signal", id: "a=b" })
    expect((await timersOf(storage)).length).toBe(2)
    await pass(rig, 100)
    expect((await wokenMs(storage, "a=b")).length).toBe(1)
    expect(await timersOf(storage)).toEqual([{ address: at("a=b"), atMs: 5_000 }])
  })

  it("set again while the first is decided on fires again", async () => {
    const storage = scripted()
    const rig = await start({}, { storage, virtualTime: true })
    await rig.ask(at("a"), { _tag: "Signal", id: "a=b" })
    storage.gate.close()
    await pass(rig, 20)
    const again = rig.ask(at("a"), { _tag: "Signal", id: "a=b" })
    await pass(rig, 20)
    storage.gate.open()
    await again
    await pass(rig, 100)
    expect((await wokenMs(storage, "a=b")).length).toBe(2)
    expect(await timersOf(storage)).toEqual([])
  })

  it("is found by the next owner after a crash", async () => {
    const storage = scripted()
    const before = await start({}, { storage, virtualTime: true })
    await before.ask(at("a"), { _tag: "Signal", id: "a=b" })
    await before.drop()
    const rig = await start({}, { storage, virtualTime: true })
    await pass(rig, 100)
    expect((await wokenMs(storage, "a=b")).length).toBe(1)
    expect(await timersOf(storage)).toEqual([])
  })

  it("of another shard is a defect", async () => {
    const rig = await start()
    expect(shardOf(at("c"))).not.toBe(shardOf(at("a")))
    const reply = await rig.ask(at("a"), { _tag: "Signal", id: "c" })
    expect(reply).toBe("ActorDefect")
  })
})

describe("an effect", () => {
  const worker = (done: Array<string>, effect?: Effect.Effect<void>): Work => (name) =>
    Effect.map(effect ?? Effect.void, () => {
      done.push(name)
      return { _tag: "Worked" } as const
    })

  it("is performed after its commit and reply, and its result is sent to the actor", async () => {
    const storage = scripted()
    const done: Array<string> = []
    const steps: Array<string> = []
    const { ask } = await start({
      behaviors: [probe(worker(done))],
      step: (step) => steps.push(step)
    }, { storage })
    storage.gate.close()
    const asked = ask(at("a"), { _tag: "Work", name: "x", retryAtMs: 1e15 })
    await turns()
    expect(done).toEqual([])
    storage.gate.open()
    await asked
    await until(async () => (await timersOf(storage)).length === 0)
    expect(done).toEqual(["x"])
    expect(steps.slice(0, 4)).toEqual(["decided", "committed", "replied", "performed"])
  })

  it("that a crash prevented is repeated by its timer", async () => {
    const storage = makeMemoryStorage()
    const done: Array<string> = []
    const lost = await start({ behaviors: [probe(worker([], Effect.never))] }, {
      storage,
      virtualTime: true
    })
    await lost.ask(at("a"), { _tag: "Work", name: "x", retryAtMs: 200 })
    await lost.drop()
    const rig = await start({ behaviors: [probe(worker(done))] }, { storage, virtualTime: true })
    await pass(rig, 100)
    expect(done).toEqual([])
    await pass(rig, 150)
    expect(done).toEqual(["x"])
    await until(async () => (await timersOf(storage)).length === 0)
    expect(await stateOf(storage)).toMatchObject({ todo: null })
  })

  it("of a commit that was lost is not performed", async () => {
    const storage = scripted()
    const done: Array<string> = []
    const limits = { reloadDelayMs: 1 }
    const { ask } = await start({ behaviors: [probe(worker(done))], limits }, { storage })
    storage.acts.push(fails, fails, fails)
    const asked = ask(at("a"), { _tag: "Work", name: "x", retryAtMs: 1e15 })
    expect(await asked).toBe("StorageUnavailable")
    expect(done).toEqual([])
  })

  it("under way delays a drain, which accepts its result and nothing new", async () => {
    const storage = makeMemoryStorage()
    const done: Array<string> = []
    const { ask, system } = await start({
      behaviors: [probe(worker(done, Effect.sleep(50)))]
    }, { storage })
    await ask(at("a"), { _tag: "Work", name: "x", retryAtMs: 1e15 })
    const drained = Effect.runPromise(system.drain)
    expect(await ask(at("b"), add)).toBe("Overloaded")
    await drained
    expect(done).toEqual(["x"])
    expect(await stateOf(storage)).toMatchObject({ todo: null })
  })
})
