/**
 * Three nodes under load on three servers in containers, whose networks are cut and healed. Without
 * Docker the servers are processes behind proxies, as the title shows (`serverHost.ts`).
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { cleanUp, pause } from "../e2e/process.ts"
import { closeReceivers } from "../e2e/receivers.ts"
import { type Choose, injectFault } from "../faults/fault.ts"
import { seed } from "../faults/form.ts"
import { Tally } from "../faults/tally.ts"
import { expectSound } from "../faults/verdict.ts"
import { Workload, workloadEnv } from "../faults/workload.ts"
import { chooseServerHost } from "./server-host.ts"
import { allStill, cutFromServers, cutOff, followerOf, killed } from "./server-faults.ts"
import type { Site } from "./site.ts"
import { World } from "./world.ts"

const stream = "KV_actors-0"
const stillMs = 2_000

const serverHost = await chooseServerHost()
const tally = new Tally("containers", seed)
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

const underLoad = async (choose: Choose): Promise<void> => {
  const acknowledged = load.acknowledged
  await injectFault({ target: world, load, tally }, choose)
  expect(load.acknowledged, world.logs).toBeGreaterThan(acknowledged)
}

describe(`three servers ${serverHost.title}, under load`, () => {
  it("survive the restart of a killed server", async () => {
    await underLoad(async () => killed(await world.leaderOf(stream)))
  })

  it("survive a pause of all servers", async () => {
    await underLoad(async () => allStill(world, stillMs))
  })

  it("survive a leader that is cut off from everything", async () => {
    await underLoad(async () => cutOff(world, await world.leaderOf(stream)))
  })

  it("survive a server that is cut off from the others only", async () => {
    await underLoad(async () => cutFromServers(world, await followerOf(world, stream)))
  })

  it("never contradicted a response of any node", async () => {
    await expectSound(load, world.urls()).catch((cause: unknown) => {
      tally.keep(cause)
      throw new Error(`seed ${seed}: ${String(cause)}; the nodes wrote:\n${world.logs}`, { cause })
    })
    tally.ends(load.recorder)
  })
})
