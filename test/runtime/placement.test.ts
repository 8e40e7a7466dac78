/** Placement on a registry in virtual time: one owner per shard under all faults. */
import { Context, Effect } from "effect"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { SHARDS } from "../../runtime/actor/address.ts"
import { StorageUnavailable } from "../../runtime/actor/errors.ts"
import { Membership } from "../../runtime/cluster/membership.ts"
import type { WitnessLease } from "../../runtime/cluster/witnesses.ts"
import { ownersAmong } from "../../runtime/cluster/rendezvous.ts"
import { defaultPlacementLimits } from "../../runtime/limits.ts"
import type { RegistryApi } from "../../runtime/ports/registry.ts"
import { randomOf } from "../../runtime/testing/index.ts"
import { type PlantedWitness, type SimulatedNode, World } from "./placement-world.ts"

const names = ["a", "b", "c", "d", "e"] as const
/** Long enough for every membership to expire and every call to time out. */
const QUIET_MS = 90_000

const nodesOf = fc.uniqueArray(fc.stringMatching(/^[a-z0-9-]{1,12}$/), {
  minLength: 1,
  maxLength: 12
})

describe("rendezvous hashing", () => {
  it("moves only the shards of the node that joins or leaves", () => {
    fc.assert(fc.property(nodesOf, (nodes) => {
      const [one = "", ...others] = nodes
      const before = ownersAmong(others)
      const after = ownersAmong([one, ...others])
      for (let shard = 0; shard < SHARDS; shard++) {
        if (after[shard] !== before[shard]) expect(after[shard]).toBe(one)
      }
    }))
  })

  it("does not depend on the order of the nodes, and assigns every shard to one of them", () => {
    fc.assert(fc.property(nodesOf, (nodes) => {
      const owners = ownersAmong(nodes)
      expect(ownersAmong(nodes.toReversed())).toEqual(owners)
      expect(owners.every((owner) => owner !== undefined && nodes.includes(owner))).toBe(true)
    }))
    expect(ownersAmong([]).every((owner) => owner === undefined)).toBe(true)
  })

  it("distributes the shards evenly", () => {
    for (const size of [2, 3, 5, 8]) {
      const nodes = Array.from({ length: size }, (_, at) => `node-${at}`)
      const owners = ownersAmong(nodes)
      const fair = SHARDS / size
      for (const node of nodes) {
        const share = owners.filter((owner) => owner === node).length
        expect(share).toBeGreaterThan(fair * 0.5)
        expect(share).toBeLessThan(fair * 1.6)
      }
    }
  })
})

/** Whether every shard is owned by the node that should own it. */
const expectSettled = (world: World): void => {
  expect(world.violations).toEqual([])
  const alive = world.nodes.filter((node) => node.alive()).map(({ name }) => name)
  expect(world.owners()).toEqual(ownersAmong(alive))
}

describe("a cluster", () => {
  it("assigns all shards, and each node observes it", async () => {
    const world = new World(1)
    for (const name of ["a", "b", "c"]) world.start(name)
    await world.pass(10_000)
    expectSettled(world)
    for (const { clustered, name } of world.nodes) {
      const { nodes, owners, self, targets } = clustered.placement.view()
      expect(self).toBe(name)
      expect(nodes.map(({ node }) => node).sort()).toEqual(["a", "b", "c"])
      expect(owners).toEqual(ownersAmong(["a", "b", "c"]))
      expect(targets).toEqual(owners)
    }
  })

  it("moves only the necessary shards when a node joins, leaves or dies", async () => {
    const world = new World(2)
    for (const name of ["a", "b"]) world.start(name)
    await world.pass(10_000)
    const moved = async (change: () => unknown, ms: number) => {
      const before = world.owners()
      world.takes.fill(0)
      change()
      await world.pass(ms)
      expectSettled(world)
      const after = world.owners()
      expect(world.takes).toEqual(after.map((owner, at) => owner === before[at] ? 0 : 1))
      return after.filter((owner, at) => owner !== before[at]).length
    }
    expect(await moved(() => world.start("c"), 5_000)).toBeGreaterThan(0)
    // The others do not wait for a node that leaves with a drain.
    expect(await moved(() => world.nodes[0]?.leave(), 5_000)).toBeGreaterThan(0)
    expect(await moved(() => world.nodes[1]?.crash(), 20_000)).toBeGreaterThan(0)
  })

  const sizes = [2, 3, 4, 5].map((size) => [size, names.slice(0, size)] as const)
  it.each(sizes)("of %d nodes reassigns the shards of a dead one within 5 s", async (_, living) => {
    const world = new World(3)
    for (const name of living) world.start(name)
    await world.pass(10_000)
    world.nodes[0]?.crash()
    await world.pass(2_400)
    expect(world.owners().includes(undefined)).toBe(true)
    await world.pass(2_600)
    expectSettled(world)
  })

  it("reassigns the shards of nodes without witnesses within the time to live", async () => {
    const world = new World(3)
    for (const name of ["a", "b", "c"]) world.start(name)
    await world.pass(10_000)
    world.nodes[0]?.crash()
    world.nodes[1]?.crash()
    await world.pass(9_000)
    expect(world.owners().includes(undefined)).toBe(true)
    await world.pass(8_000)
    expectSettled(world)
  })

  it("keeps the shards of a node that stood still for a moment", async () => {
    const world = new World(13)
    for (const name of ["a", "b", "c"]) world.start(name)
    await world.pass(10_000)
    world.takes.fill(0)
    for (const node of world.nodes) node.pause(2_600)
    await world.pass(20_000)
    expectSettled(world)
    expect(world.takes.every((takes) => takes === 0)).toBe(true)
  })

  it("stops a paused node before others take over, and lets it join again", async () => {
    const world = new World(14)
    for (const name of ["a", "b", "c"]) world.start(name)
    await world.pass(10_000)
    world.nodes[0]?.pause(20_000)
    await world.pass(5_000)
    expect(world.owners().every((owner) => owner === "b" || owner === "c")).toBe(true)
    await world.pass(30_000)
    expectSettled(world)
  })

  it("retains the shards of nodes that do not reach each other, but the registry", async () => {
    const world = new World(15)
    for (const name of ["a", "b"]) world.start(name)
    await world.pass(10_000)
    world.takes.fill(0)
    for (const node of world.nodes) node.isolate(60_000)
    await world.pass(90_000)
    expectSettled(world)
    expect(world.takes.every((takes) => takes === 0)).toBe(true)
  })

  it("lets a node that restarts on its machine take its own shards at once", async () => {
    const world = new World(4)
    world.start("a", "machine").crash()
    const a = world.start("a", "machine")
    await world.pass(3_000)
    expectSettled(world)
    a.crash()
    world.start("a", "machine")
    await world.pass(2_000)
    expectSettled(world)
  })

  it("makes a node that restarts elsewhere wait until its membership has expired", async () => {
    const world = new World(9)
    const a = world.start("a", "one machine")
    await world.pass(5_000)
    a.crash()
    world.start("a", "another machine")
    await world.pass(5_000)
    expect(world.owners().every((owner) => owner === undefined)).toBe(true)
    await world.pass(13_000)
    expectSettled(world)
    expect(world.refused).toEqual([])
  })

  const machines = [[undefined, undefined], ["one", "one"], ["one", "another"]] as const
  it.each(machines)("rejects a node whose name a living one has (%s, %s)", async (one, other) => {
    const world = new World(5)
    const first = world.start("a", one)
    await world.pass(5_000)
    world.takes.fill(0)
    const second = world.start("a", other)
    await world.pass(30_000)
    expect(world.refused).toEqual(["a"])
    expect([first.alive(), second.alive()]).toEqual([true, false])
    expectSettled(world)
    expect(world.takes.every((takes) => takes === 0)).toBe(true)
  })

  it("starts one of two nodes that begin at once with one name", async () => {
    const world = new World(10)
    world.start("a")
    world.start("a")
    await world.pass(30_000)
    expect(world.refused).toEqual(["a"])
    expectSettled(world)
  })

  it("waits until the earlier node of its name has left", async () => {
    const world = new World(11)
    const a = world.start("a")
    world.start("b")
    await world.pass(10_000)
    void a.leave()
    await world.pass(10)
    world.start("a")
    await world.pass(20_000)
    expect(world.refused).toEqual([])
    expectSettled(world)
  })

  it("ends a node whose key another process takes", async () => {
    const world = new World(12)
    const a = world.start("a")
    await world.pass(5_000)
    await world.overwrite("a")
    await world.pass(3_000)
    expect(a.clustered.placement.isLeaseValid()).toBe(false)
    await world.pass(30_000)
    expect(a.clustered.placement.isLeaseValid()).toBe(false)
    expect(world.owners().every((owner) => owner === undefined)).toBe(true)
  })

  it("stops a disconnected node before others take over", async () => {
    const world = new World(6)
    const [a] = [world.start("a"), world.start("b")]
    await world.pass(10_000)
    a?.cutOff(60_000)
    await world.pass(12_900)
    const owned = world.owners()
    expect(owned.filter((owner) => owner === "a")).toEqual([])
    expect(a?.clustered.placement.isLeaseValid()).toBe(false)
    await world.pass(10_000)
    expect(world.owners().every((owner) => owner === "b")).toBe(true)
    await world.pass(60_000)
    expectSettled(world)
  })

  it("does not wait when its last node leaves", async () => {
    const world = new World(7)
    const a = world.start("a")
    await world.pass(5_000)
    expect(a.clustered.placement.leave()).toBeUndefined()
    expect(world.owners().every((owner) => owner === "a")).toBe(true)
  })

  it("retains its shards while the registry does not answer for a while", async () => {
    const world = new World(8)
    for (const name of ["a", "b", "c"]) world.start(name)
    await world.pass(10_000)
    world.takes.fill(0)
    for (const node of world.nodes) node.loseRegistry(7_000)
    await world.pass(30_000)
    expectSettled(world)
    expect(world.takes.every((takes) => takes === 0)).toBe(true)
  })
})

type Act = (world: World) => void

const pick = (world: World, at: number): SimulatedNode | undefined => {
  const alive = world.nodes.filter((node) => node.alive())
  return alive[at % Math.max(1, alive.length)]
}

const start: fc.Arbitrary<Act> = fc.constantFrom(...names).map((name) => (world) => {
  if (!world.nodes.some((node) => node.alive() && node.name === name)) world.start(name)
})
const at = fc.nat({ max: 9 })
const ms = fc.nat({ max: 40_000 })
const act: fc.Arbitrary<Act> = fc.oneof(
  { weight: 4, arbitrary: start },
  at.map((n): Act => (world) => pick(world, n)?.crash()),
  at.map((n): Act => (world) => void pick(world, n)?.leave()),
  fc.tuple(at, ms).map(([n, forMs]): Act => (world) => pick(world, n)?.pause(forMs)),
  fc.tuple(at, ms).map(([n, forMs]): Act => (world) => pick(world, n)?.cutOff(forMs)),
  fc.tuple(at, ms).map(([n, forMs]): Act => (world) => pick(world, n)?.loseRegistry(forMs)),
  fc.tuple(at, ms).map(([n, forMs]): Act => (world) => pick(world, n)?.isolate(forMs)),
  fc.tuple(fc.constantFrom(...names), fc.constantFrom(...names), ms).map(
    (severed): Act => (world) => world.sever(...severed)
  ),
  fc.nat({ max: 30 }).map((percent): Act => (world) => void (world.faults = percent / 100))
)

describe("under random faults of nodes and network", () => {
  it("no shard has two owners, and in the end each has the right one", async () => {
    const acts = fc.array(fc.tuple(act, fc.nat({ max: 12_000 })), { minLength: 4, maxLength: 20 })
    await fc.assert(
      fc.asyncProperty(fc.integer(), acts, async (seed, history) => {
        const world = new World(seed)
        world.start("a")
        for (const [happens, afterMs] of history) {
          happens(world)
          await world.pass(afterMs)
        }
        world.faults = 0
        if (!world.nodes.some((node) => node.alive())) world.start("e")
        await world.pass(QUIET_MS)
        expectSettled(world)
      }),
      {
        numRuns: process.env["TEST_LONG"] === "1" ? 100 : 12,
        interruptAfterTimeLimit: 60_000
      }
    )
  })
})

describe("with faulty witnesses", () => {
  const planted: ReadonlyArray<PlantedWitness> = ["answers again", "agrees to all"]
  it.each(planted)("one that %s leads to two owners of a shard", async (fault) => {
    const violationsOf = async (seed: number, planted?: PlantedWitness) => {
      const world = new World(seed, planted)
      const random = randomOf(seed)
      for (const name of names.slice(0, 4)) world.start(name)
      await world.pass(10_000)
      world.faults = 0.05
      for (let round = 0; round < 4; round++) {
        const [one, other] = [pick(world, round), pick(world, round + 1)]
        if (random() < 0.5) one?.pause(3_000 + random() * 6_000)
        else one?.loseRegistry(8_000)
        if (one !== undefined && other !== undefined) world.sever(one.name, other.name, 8_000)
        await world.pass(12_000)
      }
      return world.violations
    }
    let seed = 1
    while (seed < 300 && (await violationsOf(seed, fault)).length === 0) seed++
    expect(seed).toBeLessThan(300)
    expect(await violationsOf(seed)).toEqual([])
  })
})

it("logs why a membership could not be refreshed", async () => {
  const said: Array<string> = []
  const later = new Set<readonly [number, () => void]>()
  let nowMs = 0
  let stored = 0
  const full = new StorageUnavailable({ detail: "the registry: no room" })
  const registry: RegistryApi = {
    put: () => stored++ === 0 ? Effect.succeed(1) : Effect.fail(full),
    get: (key) => Effect.succeed({ key, value: undefined, revision: 0 }),
    remove: () => Effect.void,
    watch: () => Effect.void
  }
  const time = {
    fork: Effect.runForkWith(Context.empty()),
    nowMs: () => nowMs,
    later: (ms: number, run: () => void) => {
      const one = [nowMs + ms, run] as const
      later.add(one)
      return () => void later.delete(one)
    }
  }
  new Membership(registry, time, {
    node: "a",
    format: 1,
    limits: defaultPlacementLimits,
    newIncarnation: () => "1",
    witness: "w",
    // The membership uses nothing else of it.
    witnessLease: {
      untilMs: Number.POSITIVE_INFINITY,
      begin: () => {},
      choose: () => [],
      writing: () => {},
      written: () => {},
      ping: () => {},
      stop: () => {}
    } as unknown as WitnessLease,
    onChange: () => {},
    onFault: (what) => void said.push(what)
  }).join()
  for (let turns = 0; turns < 200 && said.length === 0; turns++) {
    await new Promise(setImmediate)
    const next = [...later].reduce((one, other) => other[0] < one[0] ? other : one)
    later.delete(next)
    nowMs = next[0]
    next[1]()
  }
  expect(said).toEqual([
    "this node could not refresh its membership in time: the registry: no room"
  ])
})
