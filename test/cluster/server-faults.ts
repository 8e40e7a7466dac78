/** Faults of the servers of a cluster under load. */
import { expect } from "vitest"
import { pause } from "../e2e/process.ts"
import type { Fault } from "../faults/fault.ts"
import { recoveredWithinMs, serverServedWithinMs } from "../faults/recovery-times.ts"
import type { NatsServer } from "../runtime/nats/servers.ts"
import { expectClustered } from "./connectivity.ts"
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
export const serverKilled = (server: NatsServer, durationMs = 0): Fault => ({
  name: "a server was killed",
  inject: () => server.stop(),
  undo: () => server.restart(),
  servedWithinMs: serverServedWithinMs,
  durationMs
})

/** Kills all servers at once, and starts them again. */
export const allServersKilled = (
  { cluster: { servers } }: World<Site>,
  durationMs: number
): Fault => ({
  name: "all servers were killed",
  inject: () => Promise.all(servers.map((server) => server.stop())),
  undo: () => Promise.all(servers.map((server) => server.restart())),
  servedWithinMs: undefined,
  durationMs
})

/** Cuts a server off from the others, and heals; nodes can reach it all the time. */
export const serverPartitioned = (
  world: World<Site>,
  server: NatsServer,
  durationMs = 0
): Fault => ({
  name: "a server was cut off from the others",
  inject: async () => {
    await expectClustered(world, server, true)
    await world.cutFromServers(server)
    await expectClustered(world, server, false)
  },
  undo: () => world.heal(server),
  servedWithinMs: recoveredWithinMs,
  durationMs
})

/** Cuts a server off from the others and from the nodes, and heals. */
export const serverIsolated = (world: World<Site>, server: NatsServer, durationMs = 0): Fault => ({
  name: "a server was cut off from servers and nodes",
  inject: async () => {
    await world.cutOff(server)
    expect(await world.isReached(server)).toBe(false)
  },
  undo: () => world.heal(server),
  servedWithinMs: serverServedWithinMs,
  durationMs
})

/** Pauses a server, and resumes it. */
export const serverPaused = (server: NatsServer, durationMs: number): Fault => ({
  name: "a server was paused",
  inject: () => server.signal("SIGSTOP"),
  undo: () => server.signal("SIGCONT"),
  servedWithinMs: recoveredWithinMs,
  durationMs
})

/** Pauses all servers, and resumes them. */
export const allServersPaused = (
  { cluster: { servers } }: World<Site>,
  durationMs: number
): Fault => ({
  name: "all servers were paused",
  inject: () => Promise.all(servers.map((server) => server.signal("SIGSTOP"))),
  undo: () => Promise.all(servers.map((server) => server.signal("SIGCONT"))),
  servedWithinMs: undefined,
  durationMs
})

/** Drops the messages from one server to the others, and heals. */
export const serverMuted = (world: World, server: NatsServer, durationMs = 0): Fault => ({
  name: "no message of a server reached the others",
  inject: () => world.site.mute(server),
  undo: () => world.heal(server),
  servedWithinMs: recoveredWithinMs,
  durationMs
})

const flaps = 6
const flapMs = 700

/** Drops and forwards the messages of one server to the others, many times in turn. */
export const serverFlapping = (world: World<Site>, server: NatsServer): Fault => ({
  name: "the network of a server failed and healed repeatedly",
  inject: async () => {
    for (let n = 0; n < flaps; n += 1) {
      await world.cutFromServers(server)
      await pause(flapMs)
      await world.heal(server)
      await pause(flapMs)
    }
  },
  undo: async () => undefined,
  servedWithinMs: recoveredWithinMs,
  durationMs: 0
})

/** Deletes the data of a server, which then copies it from the others. */
export const serverWiped = (world: World, server: NatsServer): Fault => ({
  name: "a server lost its disk",
  inject: () => server.stop(),
  undo: () => world.site.wipe(server),
  servedWithinMs: serverServedWithinMs,
  durationMs: 0
})
