/** What may happen to the servers of a cluster under load, and how soon it serves again. */
import { expect } from "vitest"
import { eventually, pause } from "../e2e/process.ts"
import type { NatsServer } from "../nats/servers.ts"
import { healedWithinMs, serverServedWithinMs, told } from "./bounds.ts"
import { expectTogether } from "./hearing.ts"
import type { Load } from "./load.ts"
import type { World } from "./world.ts"

const wholeAskedMs = 500

export interface Fault {
  /** For what is told of it. */
  readonly what: string
  readonly strike: () => Promise<unknown>
  readonly mend: () => Promise<unknown>
  /** How soon all nodes serve although it lasts; undefined where they cannot. */
  readonly servedWithinMs: number | undefined
  /** How long it lasts after that. */
  readonly lastsMs: number
}

/**
 * Strikes as was chosen, and mends; all nodes serve again after each that lets them. It is chosen
 * when no copy is behind and each stream has its leader: else a second server would be broken.
 */
export const suffer = async (
  { load, world }: { readonly load: Load; readonly world: World },
  choose: () => Promise<Fault>
): Promise<void> => {
  const isWhole = async () => await world.cluster.isWhole() || undefined
  await eventually(healedWithinMs, "the servers are whole", isWhole, wholeAskedMs)
  const { lastsMs, mend, servedWithinMs, strike, what } = await choose()
  await strike()
  if (servedWithinMs !== undefined) {
    told(what, await load.servedAgain(world.urls(), servedWithinMs))
  }
  await pause(lastsMs)
  await mend()
  told(`${what}, and mended`, await load.servedAgain(world.urls(), healedWithinMs))
}

/** One that leads nothing in the stream: with it the other two still have a leader. */
export const followerOf = async (world: World, stream: string): Promise<NatsServer> => {
  const leader = await world.leaderOf(stream)
  const follower = world.cluster.servers.find((server) => server !== leader)
  if (follower === undefined) throw new Error("there is one server only")
  return follower
}

/** A server is killed, and starts again. */
export const killed = (server: NatsServer, lastsMs = 0): Fault => ({
  what: "a server was killed",
  strike: () => server.stop(),
  mend: () => server.restart(),
  servedWithinMs: serverServedWithinMs,
  lastsMs
})

/** All servers are killed at once, and start again. */
export const allKilled = ({ cluster: { servers } }: World, lastsMs: number): Fault => ({
  what: "all servers were killed",
  strike: () => Promise.all(servers.map((server) => server.stop())),
  mend: () => Promise.all(servers.map((server) => server.restart())),
  servedWithinMs: undefined,
  lastsMs
})

/** A server is cut off from the others, and reaches them again; nodes reach it all the time. */
export const cutFromServers = (
  world: World,
  server: NatsServer,
  lastsMs = 0
): Fault => ({
  what: "a server was cut off from the others",
  strike: async () => {
    await expectTogether(world, server, true)
    await world.cutFromServers(server)
    await expectTogether(world, server, false)
  },
  mend: () => world.heal(server),
  servedWithinMs: healedWithinMs,
  lastsMs
})

/** A server is cut off from the others and from the nodes, and everything is whole again. */
export const cutOff = (world: World, server: NatsServer, lastsMs = 0): Fault => ({
  what: "a server was cut off from everybody",
  strike: async () => {
    await world.cutOff(server)
    expect(await world.isReached(server)).toBe(false)
  },
  mend: () => world.heal(server),
  servedWithinMs: serverServedWithinMs,
  lastsMs
})

/** A server stands still, and goes on. */
export const still = (server: NatsServer, lastsMs: number): Fault => ({
  what: "a server stood still",
  strike: () => server.signal("SIGSTOP"),
  mend: () => server.signal("SIGCONT"),
  servedWithinMs: healedWithinMs,
  lastsMs
})

/** All servers stand still, and go on. */
export const allStill = ({ cluster: { servers } }: World, lastsMs: number): Fault => ({
  what: "all servers stood still",
  strike: () => Promise.all(servers.map((server) => server.signal("SIGSTOP"))),
  mend: () => Promise.all(servers.map((server) => server.signal("SIGCONT"))),
  servedWithinMs: undefined,
  lastsMs
})
