/** Faults of the servers of a cluster under load. */
import { expect } from "vitest"
import { pause } from "../e2e/process.ts"
import { healedWithinMs, serverServedWithinMs } from "../faults/bounds.ts"
import type { Fault } from "../faults/fault.ts"
import type { NatsServer } from "../runtime/nats/servers.ts"
import { expectTogether } from "./connectivity.ts"
import type { Site } from "./site.ts"
import type { World } from "./world.ts"

/** A server that leads no replica group of the stream: without it the other two have a leader. */
export const followerOf = async (world: World<Site>, stream: string): Promise<NatsServer> => {
  const leader = await world.leaderOf(stream)
  const follower = world.cluster.servers.find((server) => server !== leader)
  if (follower === undefined) throw new Error("there is one server only")
  return follower
}

/** Kills a server, and starts it again. */
export const killed = (server: NatsServer, lastsMs = 0): Fault => ({
  what: "a server was killed",
  inject: () => server.stop(),
  undo: () => server.restart(),
  servedWithinMs: serverServedWithinMs,
  lastsMs
})

/** Kills all servers at once, and starts them again. */
export const allKilled = ({ cluster: { servers } }: World<Site>, lastsMs: number): Fault => ({
  what: "all servers were killed",
  inject: () => Promise.all(servers.map((server) => server.stop())),
  undo: () => Promise.all(servers.map((server) => server.restart())),
  servedWithinMs: undefined,
  lastsMs
})

/** Cuts a server off from the others, and heals; nodes can reach it all the time. */
export const cutFromServers = (
  world: World<Site>,
  server: NatsServer,
  lastsMs = 0
): Fault => ({
  what: "a server was cut off from the others",
  inject: async () => {
    await expectTogether(world, server, true)
    await world.cutFromServers(server)
    await expectTogether(world, server, false)
  },
  undo: () => world.heal(server),
  servedWithinMs: healedWithinMs,
  lastsMs
})

/** Cuts a server off from the others and from the nodes, and heals. */
export const cutOff = (world: World<Site>, server: NatsServer, lastsMs = 0): Fault => ({
  what: "a server was cut off from everybody",
  inject: async () => {
    await world.cutOff(server)
    expect(await world.isReached(server)).toBe(false)
  },
  undo: () => world.heal(server),
  servedWithinMs: serverServedWithinMs,
  lastsMs
})

/** Pauses a server, and resumes it. */
export const still = (server: NatsServer, lastsMs: number): Fault => ({
  what: "a server stood still",
  inject: () => server.signal("SIGSTOP"),
  undo: () => server.signal("SIGCONT"),
  servedWithinMs: healedWithinMs,
  lastsMs
})

/** Pauses all servers, and resumes them. */
export const allStill = ({ cluster: { servers } }: World<Site>, lastsMs: number): Fault => ({
  what: "all servers stood still",
  inject: () => Promise.all(servers.map((server) => server.signal("SIGSTOP"))),
  undo: () => Promise.all(servers.map((server) => server.signal("SIGCONT"))),
  servedWithinMs: undefined,
  lastsMs
})

/** Drops the messages from one server to the others, and heals. */
export const muted = (world: World, server: NatsServer, lastsMs = 0): Fault => ({
  what: "a server was not heard by the others, but heard them",
  inject: () => world.site.mute(server),
  undo: () => world.heal(server),
  servedWithinMs: healedWithinMs,
  lastsMs
})

const flaps = 6
const flapMs = 700

/** Drops and forwards the messages of one server to the others, many times in turn. */
export const flapping = (world: World<Site>, server: NatsServer): Fault => ({
  what: "the network of a server flapped",
  inject: async () => {
    for (let n = 0; n < flaps; n += 1) {
      await world.cutFromServers(server)
      await pause(flapMs)
      await world.heal(server)
      await pause(flapMs)
    }
  },
  undo: async () => undefined,
  servedWithinMs: healedWithinMs,
  lastsMs: 0
})

/** Deletes the data of a server, which then copies it from the others. */
export const wiped = (world: World, server: NatsServer): Fault => ({
  what: "a server lost its disk",
  inject: () => server.stop(),
  undo: () => world.site.wipe(server),
  servedWithinMs: serverServedWithinMs,
  lastsMs: 0
})
