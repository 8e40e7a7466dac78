/**
 * Three nodes under load on three servers in containers, whose networks are cut and healed. Without
 * Docker the servers are processes behind proxies, as the title shows (`serverHost.ts`).
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { cleanUp, pause } from "../e2e/process.ts"
import { closeReceivers } from "../e2e/receivers.ts"
import { checkRun } from "../faults/checker.ts"
import { type ChooseFault, injectFault } from "../faults/fault.ts"
import { seed } from "../faults/run-options.ts"
import { RunStatistics } from "../faults/run-statistics.ts"
import { Workload, workloadEnv } from "../faults/workload.ts"
import { allServersPaused, followerOf, serverIsolated, serverKilled,
  serverPartitioned } from "./server-faults.ts"
import { chooseServerHost } from "./server-host.ts"
import type { Site } from "./site.ts"
import { World } from "./world.ts"

const stream = "KV_actors-0"
const stillMs = 2_000

const serverHost = await chooseServerHost()
const statistics = new RunStatistics("containers", seed)
let world: World<Site>
let load: Workload

beforeAll(async () => {
  world = await World.at(await serverHost.startSite(), ["a", "b", "c"], () => workloadEnv)
  load = await Workload.start(world.urls, seed)
  await pause(1_000)
})

afterAll(async () => {
  await world?.close()
  await serverHost.close()
  closeReceivers()
  cleanUp()
})

const underLoad = async (choose: ChooseFault): Promise<void> => {
  const acknowledged = load.acknowledged
  await injectFault({ target: world, load, statistics }, choose)
  expect(load.acknowledged, world.logs).toBeGreaterThan(acknowledged)
}

describe(`three servers ${serverHost.title}, under load`, () => {
  it("survive the restart of a killed server", async () => {
    await underLoad(async () => serverKilled(await world.leaderOf(stream)))
  })

  it("survive a pause of all servers", async () => {
    await underLoad(async () => allServersPaused(world, stillMs))
  })

  it("survive a leader that is cut off from everything", async () => {
    await underLoad(async () => serverIsolated(world, await world.leaderOf(stream)))
  })

  it("survive a server that is cut off from the others only", async () => {
    await underLoad(async () => serverPartitioned(world, await followerOf(world, stream)))
  })

  it("never contradicted a response of any node", async () => {
    await checkRun(load, world.urls()).catch((cause: unknown) => {
      statistics.writeContradiction(cause)
      throw new Error(`seed ${seed}: ${String(cause)}; the nodes wrote:\n${world.logs}`, { cause })
    })
    statistics.countRun(load.recorder)
  })
})
