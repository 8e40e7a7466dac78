/** Faults of the nodes of a cluster under load. */
import { expect } from "vitest"
import { pause } from "../e2e/process.ts"
import type { WallClock } from "../faults/clock.ts"
import type { Fault } from "../faults/fault.ts"
import { nodeServedWithinMs, recoveredWithinMs } from "../faults/recovery-times.ts"
import { rollingRestart, stop } from "./restarts.ts"
import type { ClusterNode, World } from "./world.ts"

/** Kills a node, and starts it again. */
export const nodeKilled = (world: World, node: ClusterNode): Fault => ({
  name: "a node was killed",
  inject: () => node.service.kill(),
  undo: () => world.restart(node),
  servedWithinMs: nodeServedWithinMs,
  durationMs: 0
})

/** Kills all nodes at once, and starts them again. */
export const nodesKilled = (world: World): Fault => ({
  name: "all nodes were killed",
  inject: () => Promise.all(world.nodes.map(({ service }) => service.kill())),
  undo: () => Promise.all(world.nodes.map((node) => world.restart(node))),
  servedWithinMs: undefined,
  durationMs: 0
})

/** Pauses a node, and resumes it. Requests that it has received wait meanwhile. */
export const nodePaused = (world: World, node: ClusterNode, durationMs: number): Fault => ({
  name: "a node was paused",
  inject: async () => {
    node.service.child.kill("SIGSTOP")
    world.leftOut.add(node)
  },
  undo: async () => {
    node.service.child.kill("SIGCONT")
    world.leftOut.delete(node)
  },
  servedWithinMs: nodeServedWithinMs,
  durationMs
})

const disconnections = {
  cut: "a node was cut off from NATS",
  stall: "no message passed between a node and NATS",
  there: "no message of a node reached NATS",
  back: "no message of NATS reached a node"
}
export type Disconnection = keyof typeof disconnections

/** Cuts a node off from NATS, in one direction or both; clients continue to use it. */
export const nodeDisconnected = (
  world: World,
  node: ClusterNode,
  how: Disconnection,
  durationMs: number
): Fault => ({
  name: disconnections[how],
  inject: async () => {
    for (const link of node.links) {
      if (how === "cut") link.cut()
      else if (how === "stall") link.stall()
      else link.mute(how)
    }
    // Clients avoid its own shards: only the other nodes can serve them.
    world.leftOut.add(node)
  },
  undo: async () => {
    for (const link of node.links) link.heal()
    world.leftOut.delete(node)
  },
  servedWithinMs: nodeServedWithinMs,
  durationMs
})

/** Stops and starts the nodes one after the other; no request may be refused. */
export const rolledRestart = (world: World, stalls = false): Fault => ({
  name: stalls ? "a rolling restart, each node stalling" : "a rolling restart",
  inject: () => rollingRestart(world, stalls),
  undo: async () => undefined,
  servedWithinMs: undefined,
  durationMs: 0,
  isTransparent: true
})

/** Adds two nodes and removes one; no request may be refused. */
export const membersChanged = (world: World, names: ReadonlyArray<string>): Fault => ({
  name: "nodes joined and left",
  inject: async () => {
    for (const name of names) await world.join(name)
    await pause(3_000)
    for (const node of world.nodes.slice(0, names.length)) {
      await stop(node)
      world.forget(node)
      await pause(1_000)
    }
    expect(world.urls().length).toBe(world.nodes.length)
  },
  undo: async () => undefined,
  servedWithinMs: undefined,
  durationMs: 0,
  isTransparent: true
})

/** Sets the wall clock of a node. */
export const clockSet = (node: ClusterNode, clock: WallClock, byMs: number): Fault => ({
  name: `a node's clock was set ${byMs > 0 ? "forward" : "back"} by an hour`,
  inject: async () => {
    clock.set(clock.offsetMs + byMs)
    await clock.waitUntilApplied(node.service.url)
  },
  undo: async () => undefined,
  servedWithinMs: recoveredWithinMs,
  durationMs: 0
})
