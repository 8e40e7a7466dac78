/** `/readyz`: a real turn of an actor decides, and asking often writes once a second. */
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { afterEach, describe, expect, it } from "vitest"
import { readiness, readinessAddress } from "../../actors/readiness/index.ts"
import { readinessOf, type ReadinessParts } from "../../deploy/node/readiness.ts"
import { ownsAll } from "../../runtime/cluster/placement.ts"
import { StorageUnavailable } from "../../runtime/index.ts"
import { dropAll, fails, hangs, isFull, type Scripted, scripted, start,
  turns } from "../runtime/rig.ts"

afterEach(dropAll)

const turnMsMax = 2_000
const turnValidMs = 1_000

interface Rig {
  readonly storage: Scripted
  readonly ready: Effect.Effect<void, string>
}

const rig = async (parts: Partial<ReadinessParts> = {}): Promise<Rig> => {
  const storage = scripted()
  const { system } = await start({ behaviors: [readiness] }, { storage })
  const records = { health: Effect.void }
  return { storage, ready: readinessOf({ placement: ownsAll, storage, records, system, ...parts }) }
}

/** Only the test advances time, except that of the actor system. */
const run = <A, E>(test: Effect.Effect<A, E>): Promise<A> =>
  Effect.runPromise(Effect.provide(test, TestClock.layer()))

const reasonOf = (ready: Rig["ready"]): Promise<string> => run(Effect.flip(ready))

describe("readiness", () => {
  it("is a commit that is read back, of one log item at a time", async () => {
    const { ready, storage } = await rig()
    await run(Effect.gen(function*() {
      for (let commits = 1; commits <= 3; commits++) {
        yield* ready
        expect(storage.groups.length).toBe(commits)
        yield* TestClock.adjust(turnValidMs)
      }
    }))
    const items = await Effect.runPromise(storage.read(readinessAddress(0), 1, 10))
    expect(items.map(({ n }) => n)).toEqual([3])
  })

  it("makes one turn for all who ask at once or soon after it", async () => {
    const { ready, storage } = await rig()
    await run(Effect.gen(function*() {
      yield* Effect.all(Array.from({ length: 100 }, () => ready), { concurrency: "unbounded" })
      yield* TestClock.adjust(turnValidMs - 1)
      yield* ready
      expect(storage.groups.length).toBe(1)
    }))
  })

  it.each([
    ["refuses commits", fails, "as scripted"],
    ["is full", isFull, "as scripted"]
  ])("fails while the store %s, and is back at once", async (_what, act, reason) => {
    const { ready, storage } = await rig()
    storage.acts.push(...Array.from({ length: 100 }, () => act))
    expect(await reasonOf(ready)).toBe(`an actor of this node did not commit (${reason})`)
    storage.acts.length = 0
    await run(ready)
  })

  it("fails in time while the store answers nothing", async () => {
    const { ready, storage } = await rig()
    storage.acts.push(hangs)
    const reason = await run(Effect.gen(function*() {
      const asked = yield* Effect.forkChild(Effect.flip(ready))
      while (storage.groups.length === 0) yield* Effect.promise(() => turns(1))
      yield* TestClock.adjust(turnMsMax)
      return yield* Fiber.join(asked)
    }))
    expect(reason).toBe(`an actor of this node did not commit within ${turnMsMax} ms`)
  })

  it("fails if the store does not return what it has acknowledged", async () => {
    const storage = scripted()
    const { system } = await start({ behaviors: [readiness] }, { storage })
    const forgetful = { ask: system.ask, read: () => Effect.succeed([]) }
    const { ready } = await rig({ system: forgetful })
    expect(await reasonOf(ready)).toBe("the store does not return what it has acknowledged")
  })

  it("fails with the reason of the store, and makes no turn", async () => {
    const detail = "0 bytes are left on the disk"
    const health = Effect.fail(new StorageUnavailable({ detail }))
    const { ready, storage } = await rig({ storage: { health } })
    expect(await reasonOf(ready)).toBe(detail)
    expect(storage.groups).toEqual([])
  })

  it("fails at once when the node leaves its cluster, or is no member of it", async () => {
    let isMember = true
    let leaving = false
    const { ready } = await rig({
      placement: {
        owns: () => true,
        isLeaseValid: () => isMember,
        view: () => ({
          ...ownsAll.view(),
          nodes: ownsAll.view().nodes.map((node) => ({ ...node, leaving }))
        })
      }
    })
    await run(ready)
    leaving = true
    expect(await reasonOf(ready)).toBe("this node is stopping")
    isMember = false
    expect(await reasonOf(ready)).toBe("this node is currently not a member of its cluster")
  })

  it("is a member's without shards, as just after it has joined", async () => {
    const { ready, storage } = await rig({ placement: { ...ownsAll, owns: () => false } })
    await run(ready)
    expect(storage.groups).toEqual([])
  })
})
