/** A cluster, and its possible faults. */
import { clockSet, type Cut, nodeCut, nodeKilled, nodesKilled, nodeStill, rolled,
  scaled } from "../cluster/node-faults.ts"
import { allKilled, allStill, cutFromServers, cutOff, flapping, followerOf, killed, muted, still,
  wiped } from "../cluster/server-faults.ts"
import { type ClusterNode, World } from "../cluster/world.ts"
import { WallClock } from "./clock.ts"
import { type Choose, injectFault } from "./fault.ts"
import type { Random } from "./random.ts"
import type { Tally } from "./tally.ts"
import { expectSound } from "./verdict.ts"
import { Workload, workloadEnv } from "./workload.ts"

const hourMs = 3_600_000
/** Longer than a membership lease (13 s): then others own the node's shards. */
const beyondLeaseMs = 15_000
const shortMs = 2_000
const stream = "KV_actors-0"

/** A cluster with a settable clock for each node. */
export class Clustered {
  readonly world: World
  private readonly clocks: Map<string, WallClock>
  private joined = 0

  private constructor(world: World, clocks: Map<string, WallClock>) {
    this.world = world
    this.clocks = clocks
  }

  static async start(): Promise<Clustered> {
    const clocks = new Map<string, WallClock>()
    const clockOf = (name: string) => {
      const clock = clocks.get(name) ?? new WallClock()
      clocks.set(name, clock)
      return clock
    }
    const envOf = (name: string) => ({ ...workloadEnv, ...clockOf(name).env })
    return new Clustered(await World.start(["a", "b", "c"], envOf), clocks)
  }

  /** Waits until every pending timer is due at each node. */
  async later(): Promise<void> {
    const laterMs = Math.max(...[...this.clocks.values()].map(({ mostMs }) => mostMs)) + 2 * hourMs
    for (const node of this.world.nodes) {
      const clock = this.clockOf(node)
      clock.set(laterMs)
      await clock.noticed(node.service.url)
    }
  }

  /** The faults by name. */
  get faults(): Readonly<Record<string, Choose>> {
    const { world } = this
    const leader = () => world.leaderOf(stream)
    const follower = () => followerOf(world, stream)
    const cut = (how: Cut): Choose => (random) =>
      nodeCut(world, this.node(random), how, beyondLeaseMs)
    return {
      nodeKilled: (random) => nodeKilled(world, this.node(random)),
      nodesKilled: () => nodesKilled(world),
      nodeStill: (random) => nodeStill(world, this.node(random), beyondLeaseMs),
      nodeCut: cut("cut"),
      nodeStalled: cut("stall"),
      nodeUnheard: cut("there"),
      nodeDeaf: cut("back"),
      rolled: () => rolled(world),
      rolledStalling: () => rolled(world, true),
      scaled: () => scaled(world, [this.newName(), this.newName()]),
      clockForward: (random) => this.clock(random, hourMs),
      clockBack: (random) => this.clock(random, -hourMs),
      leaderKilled: async () => killed(await leader()),
      leaderStill: async () => still(await leader(), beyondLeaseMs),
      leaderCutFromServers: async () => cutFromServers(world, await leader(), shortMs),
      leaderCutOff: async () => cutOff(world, await leader(), shortMs),
      leaderMuted: async () => muted(world, await leader(), shortMs),
      followerCut: async () => cutFromServers(world, await follower(), shortMs),
      followerWiped: async () => wiped(world, await follower()),
      flapping: async () => flapping(world, await leader()),
      allKilled: () => allKilled(world, shortMs),
      allStill: () => allStill(world, shortMs)
    }
  }

  private node(random: Random): ClusterNode {
    const node = random.of(this.world.nodes)
    if (node === undefined) throw new Error("there is no node")
    return node
  }

  private clock(random: Random, byMs: number) {
    const node = this.node(random)
    return clockSet(node, this.clockOf(node), byMs)
  }

  private clockOf({ name }: ClusterNode): WallClock {
    const clock = this.clocks.get(name)
    if (clock === undefined) throw new Error(`${name} has no clock`)
    return clock
  }

  private newName(): string {
    return `n${this.joined++}`
  }
}

/** One run: a new cluster, a load, these faults one after the other, and the verification. */
export const runCluster = async (
  { choices, clustered, seed, tally }: {
    readonly clustered: Clustered
    readonly seed: string
    readonly tally: Tally
    readonly choices: ReadonlyArray<Choose>
  }
): Promise<void> => {
  const { world } = clustered
  const load = await Workload.start(world.urls, seed)
  try {
    for (const choose of choices) await injectFault({ target: world, load, tally }, choose)
    await load.end()
    await clustered.later()
    await expectSound(load, world.urls())
    tally.ends(load.recorder)
  } catch (cause) {
    tally.keep(cause)
    throw new Error(`seed ${seed}: ${String(cause)}\n${world.logs}`, { cause })
  } finally {
    await load.end()
    await world.close()
  }
}
