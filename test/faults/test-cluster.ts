/** A cluster, and its possible faults. */
import { clockSet, type Disconnection, membersChanged, nodeDisconnected, nodeKilled, nodePaused,
  nodesKilled, rolledRestart } from "../cluster/node-faults.ts"
import { allServersKilled, allServersPaused, followerOf, serverFlapping, serverIsolated,
  serverKilled, serverMuted, serverPartitioned, serverPaused,
  serverWiped } from "../cluster/server-faults.ts"
import { type ClusterNode, World } from "../cluster/world.ts"
import { checkRun } from "./checker.ts"
import { WallClock } from "./clock.ts"
import { type ChooseFault, injectFault } from "./fault.ts"
import type { Random } from "./random.ts"
import type { RunStatistics } from "./run-statistics.ts"
import { Workload, workloadEnv } from "./workload.ts"

const hourMs = 3_600_000

/** Longer than a membership lease (13 s): then others own the node's shards. */
const longerThanLeaseMs = 15_000

const shortMs = 2_000

const stream = "KV_actors-0"

/** A cluster with a settable clock for each node. */
export class TestCluster {
  readonly world: World
  private readonly clocks: Map<string, WallClock>
  private joined = 0

  private constructor(world: World, clocks: Map<string, WallClock>) {
    this.world = world
    this.clocks = clocks
  }

  static async start(): Promise<TestCluster> {
    const clocks = new Map<string, WallClock>()
    const clockOf = (name: string) => {
      const clock = clocks.get(name) ?? new WallClock()
      clocks.set(name, clock)
      return clock
    }
    const envOf = (name: string) => ({ ...workloadEnv, ...clockOf(name).env })
    return new TestCluster(await World.start(["a", "b", "c"], envOf), clocks)
  }

  /** Waits until every pending timer is due at each node. */
  async passAllTimers(): Promise<void> {
    const laterMs = Math.max(...[...this.clocks.values()].map(({ offsetMaxMs }) => offsetMaxMs)) +
      2 * hourMs
    for (const node of this.world.nodes) {
      const clock = this.clockOf(node)
      clock.set(laterMs)
      await clock.waitUntilApplied(node.service.url)
    }
  }

  /** The faults by name. */
  get faults(): Readonly<Record<string, ChooseFault>> {
    const { world } = this
    const leader = () => world.leaderOf(stream)
    const follower = () => followerOf(world, stream)
    const disconnected = (how: Disconnection): ChooseFault => (random) =>
      nodeDisconnected(world, this.node(random), how, longerThanLeaseMs)
    return {
      nodeKilled: (random) => nodeKilled(world, this.node(random)),
      allNodesKilled: () => nodesKilled(world),
      nodePaused: (random) => nodePaused(world, this.node(random), longerThanLeaseMs),
      nodeDisconnected: disconnected("cut"),
      nodeStalled: disconnected("stall"),
      nodeSendsNothing: disconnected("there"),
      nodeReceivesNothing: disconnected("back"),
      rolledRestart: () => rolledRestart(world),
      rolledRestartStalling: () => rolledRestart(world, true),
      membersChanged: () => membersChanged(world, [this.newName(), this.newName()]),
      clockForward: (random) => this.clock(random, hourMs),
      clockBack: (random) => this.clock(random, -hourMs),
      leaderKilled: async () => serverKilled(await leader()),
      leaderPaused: async () => serverPaused(await leader(), longerThanLeaseMs),
      leaderPartitioned: async () => serverPartitioned(world, await leader(), shortMs),
      leaderIsolated: async () => serverIsolated(world, await leader(), shortMs),
      leaderMuted: async () => serverMuted(world, await leader(), shortMs),
      followerPartitioned: async () => serverPartitioned(world, await follower(), shortMs),
      followerWiped: async () => serverWiped(world, await follower()),
      leaderFlapping: async () => serverFlapping(world, await leader()),
      allServersKilled: () => allServersKilled(world, shortMs),
      allServersPaused: () => allServersPaused(world, shortMs)
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
  { choices, cluster, seed, statistics }: {
    readonly cluster: TestCluster
    readonly seed: string
    readonly statistics: RunStatistics
    readonly choices: ReadonlyArray<ChooseFault>
  }
): Promise<void> => {
  const { world } = cluster
  const load = await Workload.start(world.urls, seed)
  try {
    for (const choose of choices) await injectFault({ target: world, load, statistics }, choose)
    await load.end()
    await cluster.passAllTimers()
    await checkRun(load, world.urls())
    statistics.countRun(load.recorder)
  } catch (cause) {
    statistics.writeContradiction(cause)
    throw new Error(`seed ${seed}: ${String(cause)}\n${world.logs}`, { cause })
  } finally {
    await load.end()
    await world.close()
  }
}
