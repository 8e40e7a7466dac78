/** `/readyz`: a real turn of an actor decides, and asking often writes once a second. */
import { Effect, Fiber, Scope } from "effect"
import { TestClock } from "effect/testing"
import { afterEach, describe, expect, it } from "vitest"
import { readiness, readinessAddress } from "../../actors/readiness/index.ts"
import { readinessOf, type ReadinessParts } from "../../deploy/node/readiness.ts"
import { encodeAskFailure } from "../../runtime/actor/index.ts"
import { ownsAll, type PlacementApi } from "../../runtime/cluster/placement.ts"
import { shardOf, SHARDS, StorageUnavailable } from "../../runtime/index.ts"
import { makeMemoryStorage } from "../../runtime/memory/storage.ts"
import { makeMemoryTransport } from "../../runtime/memory/transport.ts"
import type { StorageApi } from "../../runtime/ports/storage.ts"
import type { TransportApi } from "../../runtime/ports/transport.ts"
import { dropAll, fails, hangs, isFull, type Scripted, scripted, start,
  turns } from "../runtime/rig.ts"

afterEach(dropAll)

const turnMsMax = 2_000
const turnValidMs = 1_000

interface Rig {
  readonly storage: Scripted
  readonly ready: Effect.Effect<void, string>
}

const rig = async (
  parts: Partial<ReadinessParts> = {},
  inner: StorageApi = makeMemoryStorage()
): Promise<Rig> => {
  const storage = scripted(inner)
  const { system } = await start({ behaviors: [readiness] }, { storage })
  const records = { health: Effect.void }
  return { storage, ready: readinessOf({ placement: ownsAll, storage, records, system, ...parts }) }
}

/** Only the test advances time, except that of the actor system. */
const run = <A, E>(test: Effect.Effect<A, E>): Promise<A> =>
  Effect.runPromise(Effect.provide(test, TestClock.layer()))

const threeStreams = (shard: number): number => shard % 3

/** The shards of all commits so far. */
const shardsOf = ({ groups }: Scripted): ReadonlyArray<number> =>
  groups.flat().map(({ address }) => shardOf(address))

/** How another node behaves. */
type Manner = "works" | "fails" | "hangs"

/** Another node that owns shards; what it has been asked to commit, or asked at all. */
const other = async (
  { store, transport }: { readonly store: StorageApi; readonly transport: TransportApi },
  owned: ReadonlyArray<number>,
  manner: Manner
): Promise<{ readonly asked: () => number; readonly drop: () => Promise<void> }> => {
  if (manner === "works") {
    const storage = scripted(store)
    const placement: PlacementApi = {
      ...ownsAll,
      owns: (shard) => owned.includes(shard),
      follow: (taken) => {
        for (const shard of owned) taken(shard)
        return () => {}
      }
    }
    const { drop } = await start({ behaviors: [readiness] }, { storage, transport, placement })
    return { asked: () => storage.groups.length, drop }
  }
  let asked = 0
  const failure = encodeAskFailure(new StorageUnavailable({ detail: "as scripted" }))
  for (const shard of owned) {
    const serving = transport.serve(shard, () => {
      asked++
      return manner === "fails" ? Promise.resolve(failure) : new Promise(() => {})
    })
    await Effect.runPromise(Scope.provide(serving, Scope.makeUnsafe()))
  }
  return { asked: () => asked, drop: () => Promise.resolve() }
}

/** A node without shards beside others, each of which owns every second shard, or all. */
const joined = async (manners: Readonly<Record<string, Manner>>) => {
  const shared = { store: makeMemoryStorage(), transport: makeMemoryTransport() }
  const names = Object.keys(manners)
  const owners = Array.from({ length: SHARDS }, (_, shard) => names[shard % names.length])
  const others = await Promise.all(
    Object.entries(manners).map(([name, manner]) => {
      const owned = owners.flatMap((owner, shard) => owner === name ? [shard] : [])
      return other(shared, owned, manner)
    })
  )
  const placement: PlacementApi = {
    ...ownsAll,
    owns: () => false,
    follow: () => () => {},
    view: () => ({
      self: "a",
      nodes: ["a", ...names].map((node) => ({ node, incarnation: node, leaving: false })),
      owners,
      targets: owners,
      lost: []
    })
  }
  const { store: storage, transport } = shared
  const { system } = await start({ behaviors: [readiness] }, { storage, transport, placement })
  const records = { health: Effect.void }
  const ready = readinessOf({ placement, storage, records, system })
  return { others, ready }
}

const reasonOf = (ready: Rig["ready"]): Promise<string> => run(Effect.flip(ready))

describe("readiness", () => {
  it("is a commit that is read back, of one log item at a time, in the next shard", async () => {
    const placement = { ...ownsAll, owns: (shard: number) => shard === 5 || shard === 7 }
    const { ready, storage } = await rig({ placement })
    await run(Effect.gen(function*() {
      for (let commits = 1; commits <= 5; commits++) {
        yield* ready
        expect(storage.groups.length).toBe(commits)
        yield* TestClock.adjust(turnValidMs)
      }
    }))
    const itemsIn = async (shard: number) =>
      (await Effect.runPromise(storage.read(readinessAddress(shard), 1, 10))).map(({ n }) => n)
    expect([await itemsIn(5), await itemsIn(7)]).toEqual([[3], [2]])
  })

  it("tries each stream of the store in turn, and in time each shard", async () => {
    const { ready, storage } = await rig({}, { ...makeMemoryStorage(), streamOf: threeStreams })
    // The streams have 86, 85 and 85 shards.
    const checks = Effect.andThen(ready, TestClock.adjust(turnValidMs))
    await run(Effect.forEach(Array.from({ length: SHARDS }), () => checks, { discard: true }))
    const tried = shardsOf(storage)
    expect(tried.slice(0, 7).map(threeStreams)).toEqual([0, 1, 2, 0, 1, 2, 0])
    expect(new Set(tried).size).toBe(SHARDS)
  })

  it("stays while streams stall, as long as one of them works", async () => {
    const memory = makeMemoryStorage()
    const broken = new Set([1])
    const { ready, storage } = await rig({}, {
      ...memory,
      streamOf: threeStreams,
      commit: (group, report) =>
        group.some(({ address }) => broken.has(threeStreams(shardOf(address))))
          ? fails(group, memory, report)
          : memory.commit(group, report)
    })
    const checks = (count: number) =>
      Effect.forEach(
        Array.from({ length: count }),
        () => Effect.andThen(ready, TestClock.adjust(turnValidMs)),
        { discard: true }
      )
    await run(Effect.gen(function*() {
      yield* checks(6)
      // The one that stalls is still tried in its turn.
      expect(new Set(shardsOf(storage).map(threeStreams))).toEqual(new Set([0, 1, 2]))
      broken.add(2)
      yield* checks(12)
      broken.add(0)
      expect(yield* Effect.flip(ready)).toMatch(/ in shard \d+ did not commit \(as scripted\)/)
      // Whichever works again is found in its turn, the third at the latest.
      broken.delete(1)
      yield* Effect.retry(ready, { times: 2 })
      yield* TestClock.adjust(turnValidMs)
      yield* checks(6)
    }))
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
    expect(await reasonOf(ready))
      .toBe(`an actor of this node in shard 0 did not commit (${reason})`)
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
    expect(reason).toBe(`an actor of this node in shard 0 did not commit within ${turnMsMax} ms`)
  })

  it("fails if the store does not return what it has acknowledged", async () => {
    const storage = scripted()
    const { system } = await start({ behaviors: [readiness] }, { storage })
    const forgetful = { ask: system.ask, read: () => Effect.succeed([]) }
    const { ready } = await rig({ system: forgetful })
    expect(await reasonOf(ready))
      .toBe("the store does not return what it has acknowledged in shard 0")
  })

  it("fails with the reason of the store, and makes no turn", async () => {
    const detail = "0 bytes are left on the disk"
    const health = Effect.fail(new StorageUnavailable({ detail }))
    const { ready, storage } = await rig({ storage: { health, streamOf: () => 0 } })
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

  it("of a node without shards, which has just joined, is a turn at another node", async () => {
    const { others: [b], ready } = await joined({ b: "works" })
    await run(ready)
    expect(b?.asked()).toBe(1)
    await b?.drop()
    const reason = await run(Effect.gen(function*() {
      yield* TestClock.adjust(turnValidMs)
      const asked = yield* Effect.forkChild(Effect.flip(ready))
      yield* Effect.promise(() => turns())
      yield* TestClock.adjust(turnMsMax)
      return yield* Fiber.join(asked)
    }))
    expect(reason).toBe(`an actor of b in shard 1 did not commit within ${turnMsMax} ms`)
  })

  it.each(["fails", "hangs"] as const)(
    "of a node without shards does not depend on one other node, which %s",
    async (manner) => {
      const { others: [b, c], ready } = await joined({ b: "works", c: manner })
      await run(Effect.gen(function*() {
        for (let checks = 1; checks <= 4; checks++) {
          const asked = c?.asked()
          const check = yield* Effect.forkChild(ready)
          while (check.pollUnsafe() === undefined) {
            yield* Effect.promise(() => turns(1))
            if (manner === "hangs" && c?.asked() !== asked) yield* TestClock.adjust(turnMsMax / 2)
          }
          yield* Fiber.join(check)
          expect(b?.asked()).toBe(checks)
          yield* TestClock.adjust(turnValidMs)
        }
      }))
      expect(c?.asked()).toBeGreaterThan(0)
    }
  )

  it("of a node without shards fails while no other node works, or owns any", async () => {
    const { ready } = await joined({ b: "fails", c: "fails" })
    expect(await reasonOf(ready)).toBe("an actor of c in shard 1 did not commit (as scripted)")
    const alone = await joined({})
    expect(await reasonOf(alone.ready)).toBe("no node owns a shard yet")
  })
})
