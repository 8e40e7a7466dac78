/** Restarts nodes one after the other by SIGTERM. */
import { expect } from "vitest"
import { pause } from "../e2e/process.ts"
import type { ClusterNode, World } from "./world.ts"

/** Time between the start of one node and the stop of the next. */
const betweenMs = 500
/** Delay and duration of the pause of a stopping node, while it hands its shards over. */
const stallAfterMs = 250
const stallMs = 2_000

/** Stops a node; clients use it until it no longer listens. */
export const stop = async ({ name, service }: ClusterNode): Promise<void> => {
  const ended = await service.stop()
  expect([name, ended, ended.code === 0 ? "" : service.output.slice(-2_000)])
    .toEqual([name, { code: 0, signal: null }, ""])
}

/** Pauses a node for a moment, as a busy machine does. */
const stall = async ({ service }: ClusterNode): Promise<void> => {
  await pause(stallAfterMs)
  service.child.kill("SIGSTOP")
  await pause(stallMs)
  service.child.kill("SIGCONT")
}

/** `stalls`: each node is paused while it hands its shards over. */
export const rollingRestart = async (world: World, stalls = false): Promise<void> => {
  for (const node of [...world.nodes]) {
    await Promise.all([stop(node), stalls ? stall(node) : undefined])
    await world.restart(node)
    await pause(betweenMs)
  }
}
