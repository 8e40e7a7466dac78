/**
 * Three nodes under load on three servers in containers, whose networks are cut and healed; as
 * processes with proxies where there is no Docker, as the title tells (`ground.ts`).
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { cleanUp, pause } from "../e2e/process.ts"
import { closeReceivers } from "../e2e/receivers.ts"
import { findGround } from "./ground.ts"
import { Load, loadEnv } from "./load.ts"
import {
  allStill,
  cutFromServers,
  cutOff,
  type Fault,
  followerOf,
  killed,
  suffer
} from "./server-faults.ts"
import { World } from "./world.ts"

const testMs = 180_000
const stream = "KV_actors-0"
const stillMs = 2_000

const ground = await findGround()
let world: World
let load: Load

beforeAll(async () => {
  world = await World.start(["a", "b", "c"], loadEnv, ground.startSite)
  load = await Load.start(() => world.urls())
  await pause(1_000)
}, testMs)

afterAll(async () => {
  await world?.close()
  await ground.close()
  closeReceivers()
  cleanUp()
}, testMs)

const underLoad = async (choose: () => Promise<Fault>): Promise<void> => {
  const acknowledged = load.acknowledged
  await suffer({ load, world }, choose)
  expect(load.acknowledged, world.logs).toBeGreaterThan(acknowledged)
}

describe(`three servers ${ground.title}, under load`, () => {
  it("have one killed, and started", async () => {
    await underLoad(async () => killed(await world.leaderOf(stream)))
  }, testMs)

  it("stand still all at once, and go on", async () => {
    await underLoad(async () => allStill(world, stillMs))
  }, testMs)

  it("have the one that leads the stream cut off from everybody, and healed", async () => {
    await underLoad(async () => cutOff(world, await world.leaderOf(stream)))
  }, testMs)

  it("have one cut off from the others, its clients not, and healed", async () => {
    await underLoad(async () => cutFromServers(world, await followerOf(world, stream)))
  }, testMs)

  it("have lost nothing that was acknowledged, nor its order, at any node", async () => {
    await load.end()
    await load.verify(world.urls()).catch((cause: unknown) => {
      throw new Error(`${String(cause)}; the nodes wrote:\n${world.logs}`, { cause })
    })
  }, testMs)
})
