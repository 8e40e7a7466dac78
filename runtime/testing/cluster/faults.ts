/** Faults: events that strike one node, one path or one stream of the store at a time. */
import type { Random } from "../time/index.ts"
import { streamCount } from "./noise.ts"

/** One fault. Nodes and streams are numbers from 0; all times are simulated ms. */
export type Fault =
  & { readonly atMs: number }
  & (
    | { readonly what: "kill"; readonly node: number; readonly downMs: number }
    | { readonly what: "restart"; readonly node: number; readonly downMs: number }
    | { readonly what: "pause"; readonly node: number; readonly forMs: number }
    | { readonly what: "cut"; readonly node: number; readonly forMs: number }
    | {
      readonly what: "one-way"
      readonly node: number
      readonly to: number
      readonly forMs: number
    }
    | { readonly what: "jump"; readonly node: number; readonly byMs: number }
    /** The whole store and the registry. */
    | { readonly what: "stall"; readonly forMs: number }
    /** One stream of the store answers nobody, or has no leader. */
    | { readonly what: "stall-one"; readonly stream: number; readonly forMs: number }
    | { readonly what: "leader"; readonly stream: number; readonly forMs: number }
  )

/** A random fault at this time; pauses are shorter or longer than a membership. */
export const faultOf = (random: Random, atMs: number, nodes: number): Fault => {
  const node = Math.floor(random() * nodes)
  const between = (least: number, most: number): number =>
    Math.round(least + random() * (most - least))
  const kind = random()
  if (kind < 0.22) return { atMs, what: "kill", node, downMs: between(50, 20_000) }
  if (kind < 0.3) return { atMs, what: "restart", node, downMs: between(50, 5_000) }
  if (kind < 0.39) return { atMs, what: "pause", node, forMs: between(50, 5_000) }
  if (kind < 0.52) return { atMs, what: "pause", node, forMs: between(10_000, 40_000) }
  if (kind < 0.65) return { atMs, what: "cut", node, forMs: between(500, 30_000) }
  if (kind < 0.74) {
    const to = (node + 1 + Math.floor(random() * (nodes - 1))) % nodes
    return { atMs, what: "one-way", node, to, forMs: between(500, 20_000) }
  }
  if (kind < 0.82) {
    const byMs = between(-30_000, 30_000)
    return { atMs, what: "jump", node, byMs }
  }
  if (kind < 0.86) return { atMs, what: "stall", forMs: between(500, 9_000) }
  const what = kind < 0.93 ? "stall-one" : "leader"
  return { atMs, what, stream: Math.floor(random() * streamCount), forMs: between(500, 15_000) }
}

/** Time between two restarts, ms: a node has handed its shards over and started again by then. */
const restartEveryMs = 9_000

/** Drains and restarts the nodes one after the other. */
export const rollingRestarts = (
  random: Random,
  busyMs: number,
  nodes: number
): ReadonlyArray<Fault> => {
  const count = Math.floor(busyMs / restartEveryMs) - 1
  return Array.from({ length: Math.max(0, count) }, (_, at) => ({
    atMs: (at + 1) * restartEveryMs + Math.floor(random() * 1_000),
    what: "restart",
    node: at % nodes,
    downMs: 100 + Math.floor(random() * 2_000)
  }))
}
