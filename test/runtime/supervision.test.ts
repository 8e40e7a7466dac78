/** Supervision and passivation: defects affect one actor, and idle actors use no memory. */
import { Effect } from "effect"
import { afterEach, describe, expect, it } from "vitest"
import { makeMemoryStorage } from "../../runtime/memory/storage.ts"
import type { StorageApi } from "../../runtime/ports/storage.ts"
import { commitOf } from "../suites/commit.ts"
import { at, type Message, probe, type Reply, type State } from "./probe.ts"
import { dropAll, type Rig, scripted, start, turns, until } from "./rig.ts"

afterEach(dropAll)

const add = { _tag: "Add", by: 1 } as const
const read = { _tag: "Read" } as const
const broken = { _tag: "Break" } as const

const lift = ({ system }: Rig, id: string) => Effect.runPromise(system.lift(at(id)))

const active = ({ system }: Rig): number => system.snapshot().activations.get("probe")?.active ?? 0

/** Asks in virtual time: advances it by the restart delays. */
const patient = async (rig: Rig, message: Message, id = "a"): Promise<Reply | string> => {
  let answer: Reply | string | undefined
  void rig.ask(at(id), message).then((reply) => answer = reply)
  await until(async () => {
    await rig.pass(10)
    return answer !== undefined
  })
  return answer ?? "never"
}

describe("a defect in a decision", () => {
  it("answers its caller, restarts the actor and retains earlier decisions", async () => {
    const rig = await start({}, { virtualTime: true })
    const replies = [rig.ask(at("a"), add), rig.ask(at("a"), broken), rig.ask(at("a"), read)]
    expect(await replies[0]).toEqual({ count: 1, head: 0 })
    expect(await replies[1]).toBe("ActorDefect")
    let answered = false
    void replies[2]?.then(() => answered = true)
    await turns()
    expect(answered).toBe(false)
    await rig.pass(10)
    expect(await replies[2]).toEqual({ count: 1, head: 0 })
    expect(rig.logs.join()).toContain("broken on request")
    expect(rig.system.snapshot().metrics.of("probe").restarts).toBe(1)
  })

  it("backs off twice as long each time, and quarantines after five within a minute", async () => {
    const rig = await start({}, { virtualTime: true })
    for (const delayMs of [10, 20, 40, 80]) {
      expect(await rig.ask(at("a"), broken)).toBe("ActorDefect")
      let answered = false
      const next = rig.ask(at("a"), read).then(() => answered = true)
      await rig.pass(delayMs - 1)
      await turns()
      expect(answered).toBe(false)
      await rig.pass(1)
      await next
    }
    const waiting = [rig.ask(at("a"), broken), rig.ask(at("a"), add)]
    expect(await Promise.all(waiting)).toEqual(["ActorDefect", "Quarantined"])
    expect(await rig.ask(at("a"), read)).toBe("Quarantined")
    expect(rig.system.snapshot().quarantined.map(({ address }) => address)).toEqual([at("a")])
    expect(await rig.ask(at("b"), add)).toEqual({ count: 1, head: 0 })
    await rig.pass(600_000)
    expect(await rig.ask(at("a"), add)).toEqual({ count: 1, head: 0 })
    expect(rig.system.snapshot().quarantined).toEqual([])
  })

  it("can be lifted by hand; lifting reports false without a quarantine", async () => {
    const rig = await start({ limits: { restartsMax: 1 } }, { virtualTime: true })
    expect(await rig.ask(at("a"), broken)).toBe("ActorDefect")
    expect(await rig.ask(at("a"), read)).toBe("Quarantined")
    expect(await lift(rig, "b")).toBe(false)
    expect(await lift(rig, "a")).toBe(true)
    expect(await lift(rig, "a")).toBe(false)
    expect(await rig.ask(at("a"), read)).toEqual({ count: 0, head: 0 })
  })

  it("forgets restarts that are a minute old", async () => {
    const rig = await start({}, { virtualTime: true })
    for (let round = 0; round < 8; round++) {
      expect(await patient(rig, broken)).toBe("ActorDefect")
      await rig.pass(20_000)
    }
    expect(await patient(rig, read)).toEqual({ count: 0, head: 0 })
  })
})

describe("quarantine", () => {
  it("still commits and answers earlier decisions", async () => {
    const storage = scripted()
    const rig = await start({ limits: { restartsMax: 1 } }, { storage })
    await rig.ask(at("a"), read)
    storage.gate.close()
    const decided = [rig.ask(at("a"), add)]
    await turns()
    decided.push(rig.ask(at("a"), add))
    await turns()
    const after = [rig.ask(at("a"), broken), rig.ask(at("a"), add)]
    expect(await Promise.all(after)).toEqual(["ActorDefect", "Quarantined"])
    storage.gate.open()
    expect(await Promise.all(decided)).toEqual([{ count: 1, head: 0 }, { count: 2, head: 0 }])
    expect(await lift(rig, "a")).toBe(true)
    expect(await rig.ask(at("a"), read)).toEqual({ count: 2, head: 0 })
  })

  it("affects only the actor whose record is unreadable", async () => {
    const storage = makeMemoryStorage()
    await Effect.runPromise(storage.commit([commitOf({ address: at("a"), state: "no JSON" })]))
    const rig = await start({}, { storage, virtualTime: true })
    expect(await patient(rig, add)).toBe("Quarantined")
    expect(await rig.ask(at("b"), add)).toEqual({ count: 1, head: 0 })
  })
})

describe("a defect elsewhere", () => {
  it("in the record's encoding is the actor's own, the group is written without it", async () => {
    const rig = await start({}, { virtualTime: true })
    const bad = rig.ask(at("a"), { _tag: "BreakRecord" })
    const good = rig.ask(at("b"), add)
    expect(await bad).toBe("ActorDefect")
    expect(await good).toEqual({ count: 1, head: 0 })
    expect(await patient(rig, add)).toEqual({ count: 1, head: 0 })
  })

  it("in an effect restarts the actor", async () => {
    const rig = await start({}, { virtualTime: true })
    expect(await rig.ask(at("a"), { _tag: "BreakEffect" })).toEqual({ count: 0, head: 0 })
    await until(() => rig.system.snapshot().metrics.of("probe").restarts === 1)
    expect(rig.logs.join()).toContain("effect broken")
    expect(await patient(rig, add)).toEqual({ count: 1, head: 0 })
  })

  it("in the transport's announcements or the store's commit breaks nothing", async () => {
    const storage = scripted()
    const rig = await start({ limits: { reloadDelayMs: 1 } }, { storage })
    storage.acts.push(() => {
      throw new Error("thrown, not failed")
    })
    expect(await rig.ask(at("a"), add)).toBe("StorageUnavailable")
    expect(await rig.ask(at("a"), add)).toEqual({ count: 1, head: 0 })
  })
})

describe("a message without a cell", () => {
  it("is rejected by name and has no effect", async () => {
    const { ask, system } = await start()
    const unknown = { _tag: "Nonsense" } as unknown as Message // as an untyped caller would
    expect(await ask(at("a"), unknown)).toBe("UnknownMessage")
    const nobody = { kind: "nobody", id: "a" }
    const failure = await Effect.runPromise(Effect.flip(system.ask(nobody, read)))
    expect(failure).toMatchObject({ _tag: "UnknownMessage", detail: "no such kind" })
  })
})

describe("passivation", () => {
  it("passivates idle actors, which return with their state", async () => {
    const rig = await start({}, { virtualTime: true })
    await rig.ask(at("a"), add)
    await rig.pass(30_000)
    await rig.ask(at("b"), add)
    await rig.pass(40_000)
    expect(active(rig)).toBe(1)
    await rig.pass(60_000)
    expect(active(rig)).toBe(0)
    expect(rig.system.snapshot().metrics.of("probe").passivations).toBe(2)
    expect(await rig.ask(at("a"), read)).toEqual({ count: 1, head: 0 })
  })

  it("passivates the least recently used actors first", async () => {
    const rig = await start({ limits: { residentActorsMax: 3 } }, { virtualTime: true })
    const activations = () => rig.system.snapshot().metrics.of("probe").activations
    for (const id of ["a", "b", "c"]) await rig.ask(at(id), add)
    await rig.pass(5_000)
    for (const id of ["a", "d", "e"]) {
      await rig.ask(at(id), add)
      expect(active(rig)).toBe(3)
    }
    expect(activations()).toBe(5)
    await rig.ask(at("a"), add)
    expect(activations()).toBe(5)
  })

  it("bounds the bytes of large actors, the least recently used first", async () => {
    const limits = { largeActorBytesMin: 100, largeActorsBytesMax: 300 }
    const bytesOf = (state: State) => state._tag === "Idle" ? state.count : 0
    const behaviors = [{ ...probe(), bytesOf }]
    const rig = await start({ limits, behaviors }, { virtualTime: true })
    const activations = () => rig.system.snapshot().metrics.of("probe").activations
    const grow = (id: string, by: number) => rig.ask(at(id), { _tag: "Add", by })
    for (const id of ["small-1", "small-2", "small-3", "small-4"]) await grow(id, 99)
    for (const id of ["a", "b", "c"]) await grow(id, 100)
    expect(active(rig)).toBe(7)
    await rig.pass(5_000)
    await rig.ask(at("a"), read)
    await grow("d", 100)
    expect([active(rig), activations()]).toEqual([7, 8])
    await rig.ask(at("a"), read)
    expect(activations()).toBe(8)
    // Loaded for a message that changes nothing, it counts too.
    expect(await rig.ask(at("b"), read)).toEqual({ count: 100, head: 0 })
    expect([active(rig), activations()]).toEqual([7, 9])
    // It becomes small, and makes room.
    await grow("d", -50)
    await grow("e", 100)
    expect(active(rig)).toBe(8)
    await rig.ask(at("e"), { _tag: "Vanish" })
    await grow("f", 100)
    expect(active(rig)).toBe(9)
  })

  it("takes the length of the record for the size of a state", async () => {
    const limits = { largeActorBytesMin: 1, largeActorsBytesMax: 1 }
    const rig = await start({ limits })
    for (const id of ["a", "b", "c"]) {
      await rig.ask(at(id), add)
      expect(active(rig)).toBe(1)
    }
    expect(await rig.ask(at("a"), read)).toEqual({ count: 1, head: 0 })
    expect(active(rig)).toBe(1)
  })

  it("spares busy actors; above the limit one more actor is rejected", async () => {
    const storage = scripted()
    const limits = { residentActorsMax: 1, activeActorsMax: 2 }
    const { ask } = await start({ limits }, { storage })
    storage.gate.close()
    const busy = [ask(at("a"), add), ask(at("b"), add)]
    await turns()
    expect(await ask(at("c"), add)).toBe("Overloaded")
    storage.gate.open()
    expect(await Promise.all(busy)).toEqual([{ count: 1, head: 0 }, { count: 1, head: 0 }])
    expect(await ask(at("c"), add)).toEqual({ count: 1, head: 0 })
  })

  it("spares an actor that is being written", async () => {
    const storage: StorageApi = makeMemoryStorage()
    const gated = scripted(storage)
    const rig = await start({}, { storage: gated, virtualTime: true })
    await rig.ask(at("a"), read)
    gated.gate.close()
    const asked = rig.ask(at("a"), add)
    await turns()
    await rig.pass(9_000)
    expect(active(rig)).toBe(1)
    gated.gate.open()
    expect(await asked).toEqual({ count: 1, head: 0 })
  })
})
