/** Nodes that stop in good order and come back, one after the other. */
import { expect } from "vitest"
import { pause } from "../e2e/process.ts"
import type { ClusterNode, World } from "./world.ts"

/** Between a node's start and the next one's end. */
const betweenMs = 500
/** From the order to stop until it stands still, and for how long: its shards are moving. */
const stallAfterMs = 250
const stallMs = 2_000

/** Stops a node in good order; it is asked until it does not listen any more. */
export const stop = async ({ name, service }: ClusterNode): Promise<void> => {
  const ended = await service.stop()
  expect([name, ended, ended.code === 0 ? "" : service.output.slice(-2_000)])
    .toEqual([name, { code: 0, signal: null }, ""])
}

/** Lets a node stand still for a moment, as one does on a machine that is busy. */
const stall = async ({ service }: ClusterNode): Promise<void> => {
  await pause(stallAfterMs)
  service.child.kill("SIGSTOP")
  await pause(stallMs)
  service.child.kill("SIGCONT")
}

/** `stalls`: each stands still while it hands its shards over. */
export const rollingRestart = async (world: World, stalls = false): Promise<void> => {
  for (const node of [...world.nodes]) {
    await Promise.all([stop(node), stalls ? stall(node) : undefined])
    await world.restart(node)
    await pause(betweenMs)
  }
}
