/** What an actor looks like, for people who search for a fault. */
import { Effect, Scope } from "effect"
import { afterEach, describe, expect, it } from "vitest"
import { encodeMessage, encodeReply, shardOf } from "../../runtime/actor/index.ts"
import { ownsAll } from "../../runtime/cluster/placement.ts"
import type { Inspection } from "../../runtime/index.ts"
import { inspectedStateCharsMax } from "../../runtime/limits.ts"
import { makeMemoryStorage } from "../../runtime/memory/storage.ts"
import { makeMemoryTransport } from "../../runtime/memory/transport.ts"
import { inspectMessage } from "../../runtime/node.ts"
import { commitOf } from "../suites/commit.ts"
import { at } from "./probe.ts"
import { dropAll, type Rig, scripted, start, turns, until } from "./rig.ts"

afterEach(dropAll)

const add = { _tag: "Add", by: 1 } as const

const inspect = ({ system }: Rig, id = "a"): Promise<Inspection> =>
  Effect.runPromise(system.inspect(at(id)))

const ownsNone = { ...ownsAll, owns: () => false, follow: () => () => {} }

/** A node beside one that answers each message with this inspection. */
const asking = async (inspection: unknown): Promise<Rig> => {
  const transport = makeMemoryTransport()
  const owner = transport.serve(shardOf(at("a")), async () => encodeReply(inspection))
  await Effect.runPromise(Scope.provide(owner, Scope.makeUnsafe()))
  return start({}, { transport, placement: ownsNone })
}

const stateOf = ({ state = "" }: Inspection): unknown => JSON.parse(state)

describe("an actor", () => {
  it("that does not exist has no state, also once it was asked for", async () => {
    const rig = await start()
    const nothing = { head: 0, queued: 0, restarts: 0 }
    expect(await inspect(rig)).toEqual({ ...nothing, isLoaded: false })
    await rig.ask(at("a"), { _tag: "Read" })
    expect(await inspect(rig)).toEqual({ ...nothing, isLoaded: true })
  })

  it("in memory shows its state, log, timer and format", async () => {
    const rig = await start()
    await rig.ask(at("a"), add)
    await rig.ask(at("a"), { _tag: "Note", text: "one" })
    await rig.ask(at("a"), { _tag: "SetTimer", atMs: 9_000_000_000_000 })
    const found = await inspect(rig)
    expect(found).toMatchObject({
      format: 1,
      head: 1,
      timerMs: 9_000_000_000_000,
      isLoaded: true,
      queued: 0,
      restarts: 0
    })
    expect(stateOf(found)).toMatchObject({ _tag: "Idle", count: 1 })
  })

  it("in the store is shown, and is not loaded", async () => {
    const storage = makeMemoryStorage()
    const before = await start({}, { storage })
    await before.ask(at("a"), add)
    await before.ask(at("a"), { _tag: "SetTimer", atMs: 9_000_000_000_000 })
    await before.drop()
    const rig = await start({}, { storage })
    const found = await inspect(rig)
    expect(found).toMatchObject({ isLoaded: false, timerMs: 9_000_000_000_000, format: 1 })
    expect(stateOf(found)).toMatchObject({ count: 1 })
    expect(rig.system.snapshot().activations.get("probe")?.active).toBe(0)
    expect(await rig.ask(at("a"), add)).toEqual({ count: 2, head: 0 })
  })

  it("shows messages that wait for a commit, which its state is ahead of", async () => {
    const storage = scripted()
    const rig = await start({}, { storage })
    await rig.ask(at("a"), add)
    storage.gate.close()
    const waits = rig.ask(at("a"), add)
    await turns()
    const found = await inspect(rig)
    expect(found).toMatchObject({ queued: 1, waiting: [{ message: "Add", count: 1 }] })
    expect(stateOf(found)).toMatchObject({ count: 2 })
    storage.gate.open()
    expect(await waits).toEqual({ count: 2, head: 0 })
    expect(await inspect(rig)).not.toHaveProperty("waiting")
  })

  it("shows the kinds of the messages that wait, and since when the oldest does", async () => {
    const storage = scripted()
    const rig = await start({}, { storage, virtualTime: true })
    await rig.ask(at("a"), add)
    storage.gate.close()
    await rig.pass(5_000)
    void rig.ask(at("a"), { _tag: "Read" })
    void rig.ask(at("a"), add)
    await rig.pass(1_000)
    for (const message of [add, { _tag: "Read" }, add] as const) void rig.ask(at("a"), message)
    await turns()
    const found = await inspect(rig)
    expect(found).toMatchObject({
      queued: 4,
      waiting: [{ message: "Add", count: 3 }, { message: "Read", count: 1 }],
      oldestMs: 5_000
    })
    storage.gate.open()
  })

  it("in quarantine shows its last fault, and what it has stored", async () => {
    const rig = await start({ limits: { restartsMax: 1 } })
    await rig.ask(at("a"), add)
    expect(await rig.ask(at("a"), { _tag: "Break" })).toBe("ActorDefect")
    await until(() => rig.system.snapshot().quarantined.length === 1)
    const found = await inspect(rig)
    expect(found).toMatchObject({ isLoaded: false, restarts: 1 })
    expect(found.fault).toMatch(/^Error at /)
    expect(found.quarantine?.untilMs).toBeGreaterThan(found.quarantine?.sinceMs ?? Infinity)
    expect(stateOf(found)).toMatchObject({ count: 1 })
    await Effect.runPromise(rig.system.lift(at("a")))
    expect(await inspect(rig)).not.toHaveProperty("quarantine")
  })

  it("shows its last fault also when the window and the quarantine are over", async () => {
    const rig = await start({ limits: { restartsMax: 1 } }, { virtualTime: true })
    await rig.pass(7_000)
    expect(await rig.ask(at("a"), { _tag: "Break" })).toBe("ActorDefect")
    const { fault, faultAtMs } = await inspect(rig)
    expect(fault).toMatch(/^Error at /)
    expect(faultAtMs).toBe(7_000)
    await Effect.runPromise(rig.system.lift(at("a")))
    await rig.pass(600_000)
    expect(await rig.ask(at("a"), add)).toEqual({ count: 1, head: 0 })
    expect(await inspect(rig)).toMatchObject({ restarts: 0, fault, faultAtMs })
    expect(await inspect(rig, "b")).not.toHaveProperty("fault")
  })

  it("is among so many whose last faults a node remembers, the latest ones", async () => {
    const rig = await start({ limits: { restartsMax: 1, lastFaultsMax: 2 } })
    const breaks = async (id: string): Promise<void> => {
      expect(await rig.ask(at(id), { _tag: "Break" })).toBe("ActorDefect")
      await Effect.runPromise(rig.system.lift(at(id)))
    }
    for (const id of ["a", "b", "a", "c"]) await breaks(id)
    const remembered = await Promise.all(
      ["a", "b", "c"].map(async (id) => (await inspect(rig, id)).fault !== undefined)
    )
    expect(remembered).toEqual([true, false, true])
  })

  it("whose record is unreadable is shown as it is stored", async () => {
    const storage = makeMemoryStorage()
    await Effect.runPromise(storage.commit([commitOf({ address: at("a"), state: "no state" })]))
    const found = await inspect(await start({}, { storage }))
    expect(found).toMatchObject({ state: "no state", stateChars: 8, isLoaded: false })
    expect(found).not.toHaveProperty("format")
  })

  it("whose state is too large shows only its size", async () => {
    const storage = makeMemoryStorage()
    const text = `1 ${"x".repeat(inspectedStateCharsMax + 1)}`
    await Effect.runPromise(storage.commit([commitOf({ address: at("a"), state: text })]))
    const found = await inspect(await start({}, { storage }))
    expect(found).toMatchObject({ stateChars: inspectedStateCharsMax + 1, format: 1 })
    expect(found).not.toHaveProperty("state")
  })

  it("of another node is shown by its owner", async () => {
    const transport = makeMemoryTransport()
    const owner = await start({}, { transport, placement: ownsAll })
    const other = await start({}, { transport, placement: ownsNone })
    await owner.ask(at("a"), add)
    const found = await inspect(other)
    expect(found.isLoaded).toBe(true)
    expect(stateOf(found)).toMatchObject({ count: 1 })
  })

  it("of a node of an earlier version has its last fault without a time", async () => {
    const fault = "TypeError at x.ts:1"
    const found = await inspect(
      await asking({ head: 2, isLoaded: true, queued: 0, restarts: 1, fault })
    )
    expect(found).toEqual({ head: 2, isLoaded: true, queued: 0, restarts: 1, fault })
  })

  it("of a node of a later version has what this one knows", async () => {
    const known = { head: 2, isLoaded: true, queued: 0, restarts: 0 }
    expect(await inspect(await asking({ ...known, moods: ["sad"] }))).toEqual(known)
  })

  it("is a failure if its node reports it in an unknown form", async () => {
    const rig = await asking({ head: 2, isLoaded: true, queued: 0, restarts: 1, fault: { at: 1 } })
    const exit = await Effect.runPromiseExit(rig.system.inspect(at("a")))
    expect(JSON.stringify(exit)).toContain("UnknownMessage")
  })

  it("sends its last fault as a text, which nodes of an earlier version show", async () => {
    const transport = makeMemoryTransport()
    const owner = await start({ limits: { restartsMax: 1 } }, { transport, placement: ownsAll })
    expect(await owner.ask(at("a"), { _tag: "Break" })).toBe("ActorDefect")
    const reply = await new Promise<string>((resolve) =>
      transport.request(at("a"), encodeMessage(inspectMessage), 5_000, (_, text) => resolve(text))
    )
    expect(JSON.parse(reply)).toMatchObject({
      reply: { fault: expect.stringMatching(/^Error at /) }
    })
  })

  it("is a failure while the store does not answer", async () => {
    const storage = { ...makeMemoryStorage(), load: () => Effect.never }
    const rig = await start({ limits: { storageDeadlineMs: 50 } }, { storage })
    const exit = await Effect.runPromiseExit(rig.system.inspect(at("a")))
    expect(JSON.stringify(exit)).toContain("StorageUnavailable")
  })
})
