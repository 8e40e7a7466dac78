/** Faults of the nodes of a cluster under load. */
import { expect } from "vitest"
import { pause } from "../e2e/process.ts"
import { healedWithinMs, nodeServedWithinMs } from "../faults/bounds.ts"
import type { WallClock } from "../faults/clock.ts"
import type { Fault } from "../faults/fault.ts"
import { rollingRestart, stop } from "./restarts.ts"
import type { ClusterNode, World } from "./world.ts"

/** Kills a node, and starts it again. */
export const nodeKilled = (world: World, node: ClusterNode): Fault => ({
  what: "a node was killed",
  inject: () => node.service.kill(),
  undo: () => world.restart(node),
  servedWithinMs: nodeServedWithinMs,
  lastsMs: 0
})

/** Kills all nodes at once, and starts them again. */
export const nodesKilled = (world: World): Fault => ({
  what: "all nodes were killed",
  inject: () => Promise.all(world.nodes.map(({ service }) => service.kill())),
  undo: () => Promise.all(world.nodes.map((node) => world.restart(node))),
  servedWithinMs: undefined,
  lastsMs: 0
})

/** Pauses a node, and resumes it. Requests that it has received wait meanwhile. */
export const nodeStill = (world: World, node: ClusterNode, lastsMs: number): Fault => ({
  what: "a node stood still",
  inject: async () => {
    node.service.child.kill("SIGSTOP")
    world.leftOut.add(node)
  },
  undo: async () => {
    node.service.child.kill("SIGCONT")
    world.leftOut.delete(node)
  },
  servedWithinMs: nodeServedWithinMs,
  lastsMs
})

const cuts = {
  cut: "a node was cut off from NATS",
  stall: "a node heard nothing of NATS, nor NATS of it",
  there: "a node was not heard by NATS, but heard it",
  back: "a node did not hear NATS, but was heard"
}
export type Cut = keyof typeof cuts

/** Cuts a node off from NATS, in one direction or both; clients continue to use it. */
export const nodeCut = (
  world: World,
  node: ClusterNode,
  how: Cut,
  lastsMs: number
): Fault => ({
  what: cuts[how],
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
  lastsMs
})

/** Stops and starts the nodes one after the other; no request may be refused. */
export const rolled = (world: World, stalls = false): Fault => ({
  what: stalls ? "a rolling restart, each node stalling" : "a rolling restart",
  inject: () => rollingRestart(world, stalls),
  undo: async () => undefined,
  servedWithinMs: undefined,
  lastsMs: 0,
  refusesNobody: true
})

/** Adds two nodes and removes one; no request may be refused. */
export const scaled = (world: World, names: ReadonlyArray<string>): Fault => ({
  what: "nodes came and went",
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
  lastsMs: 0,
  refusesNobody: true
})

/** Sets the wall clock of a node. */
export const clockSet = (node: ClusterNode, clock: WallClock, byMs: number): Fault => ({
  what: `a node's clock was set ${byMs > 0 ? "forward" : "back"} by an hour`,
  inject: async () => {
    clock.set(clock.offMs + byMs)
    await clock.noticed(node.service.url)
  },
  undo: async () => undefined,
  servedWithinMs: healedWithinMs,
  lastsMs: 0
})
