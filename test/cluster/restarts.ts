/** Nodes that stop in good order and come back, one after the other. */
import { expect } from "vitest"
import { pause } from "../e2e/process.ts"
import type { ClusterNode, World } from "./world.ts"

/** Between a node's start and the next one's end. */
const betweenMs = 500

/** Stops a node in good order; it is asked until it does not listen any more. */
export const stop = async ({ name, service }: ClusterNode): Promise<void> => {
  const ended = await service.stop()
  expect([name, ended, ended.code === 0 ? "" : service.output.slice(-2_000)])
    .toEqual([name, { code: 0, signal: null }, ""])
}

export const rollingRestart = async (world: World): Promise<void> => {
  for (const node of [...world.nodes]) {
    await stop(node)
    await world.restart(node)
    await pause(betweenMs)
  }
}
