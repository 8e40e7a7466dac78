/** What an actor looks like, for people who search for a fault. */
import { Effect } from "effect"
import { afterEach, describe, expect, it } from "vitest"
import { ownsAll } from "../../runtime/cluster/placement.ts"
import type { Inspection } from "../../runtime/index.ts"
import { inspectedStateCharsMax } from "../../runtime/limits.ts"
import { makeMemoryStorage } from "../../runtime/memory/storage.ts"
import { makeMemoryTransport } from "../../runtime/memory/transport.ts"
import { at } from "./probe.ts"
import { dropAll, type Rig, scripted, start, turns, until } from "./rig.ts"

afterEach(dropAll)

const add = { _tag: "Add", by: 1 } as const

const inspect = ({ system }: Rig, id = "a"): Promise<Inspection> =>
  Effect.runPromise(system.inspect(at(id)))

/** A commit that changes nothing. */
const unchanged = {
  expected: 0,
  head: 0,
  append: [],
  remove: [],
  timer: undefined,
  signals: [],
  consumedSignal: undefined,
  firedTimer: undefined
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
    expect(found.queued).toBe(1)
    expect(stateOf(found)).toMatchObject({ count: 2 })
    storage.gate.open()
    expect(await waits).toEqual({ count: 2, head: 0 })
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

  it("whose record is unreadable is shown as it is stored", async () => {
    const storage = makeMemoryStorage()
    await Effect.runPromise(storage.commit([{ ...unchanged, address: at("a"), state: "no state" }]))
    const found = await inspect(await start({}, { storage }))
    expect(found).toMatchObject({ state: "no state", stateChars: 8, isLoaded: false })
    expect(found).not.toHaveProperty("format")
  })

  it("whose state is too large shows only its size", async () => {
    const storage = makeMemoryStorage()
    const text = `1 ${"x".repeat(inspectedStateCharsMax + 1)}`
    await Effect.runPromise(storage.commit([{ ...unchanged, address: at("a"), state: text }]))
    const found = await inspect(await start({}, { storage }))
    expect(found).toMatchObject({ stateChars: inspectedStateCharsMax + 1, format: 1 })
    expect(found).not.toHaveProperty("state")
  })

  it("of another node is shown by its owner", async () => {
    const transport = makeMemoryTransport()
    const owner = await start({}, { transport, placement: ownsAll })
    const other = await start({}, {
      transport,
      placement: { ...ownsAll, owns: () => false, follow: () => () => {} }
    })
    await owner.ask(at("a"), add)
    const found = await inspect(other)
    expect(found.isLoaded).toBe(true)
    expect(stateOf(found)).toMatchObject({ count: 1 })
  })

  it("is a failure while the store does not answer", async () => {
    const storage = { ...makeMemoryStorage(), load: () => Effect.never }
    const rig = await start({ limits: { storageDeadlineMs: 50 } }, { storage })
    const exit = await Effect.runPromiseExit(rig.system.inspect(at("a")))
    expect(JSON.stringify(exit)).toContain("StorageUnavailable")
  })
})
