/**
 * Three nodes on three servers under load: a rolling restart that nobody notices, then a leader of
 * NATS and a node that are killed. The other faults are in `faults.long.ts`.
 */
import { afterAll, describe, expect, it } from "vitest"
import { asAdmin, expectStatus, postXml } from "../e2e/client.ts"
import { cleanUp, pause } from "../e2e/process.ts"
import { closeReceivers } from "../e2e/receivers.ts"
import { nodeServedWithinMs, told } from "./bounds.ts"
import { Load, loadEnv } from "./load.ts"
import { rollingRestart } from "./restarts.ts"
import { killed, suffer } from "./server-faults.ts"
import { World } from "./world.ts"

const testMs = 180_000

let world: World | undefined
afterAll(async () => {
  await world?.close()
  closeReceivers()
  cleanUp()
})

/** The same keyed request at each node: answers are sealed with a secret that all agreed on. */
const expectOneSecret = async (urls: ReadonlyArray<string>): Promise<void> => {
  const body = "<mailbox><name>keyed</name></mailbox>"
  const headers = { ...asAdmin, "idempotency-key": "\"once\"" }
  const answers: Array<string> = []
  for (const url of urls) {
    answers.push(expectStatus(await postXml(url, "/mailboxes", body, headers), 201).text)
  }
  expect(new Set(answers).size).toBe(1)
}

describe("a cluster under load", () => {
  it("loses nothing to a rolling restart, a killed leader and a killed node", async () => {
    const here = world = await World.start(["a", "b", "c"], loadEnv)
    await expectOneSecret(here.urls())
    const load = await Load.start(() => here.urls())
    await pause(1_000)
    await rollingRestart(here)
    await pause(500)
    expect(load.refusals, here.logs).toEqual([])

    await suffer({ load, world: here }, async () => killed(await here.leaderOf("KV_actors-0")))

    const [victim] = here.nodes
    await victim?.service.kill()
    told("a node was killed", await load.servedAgain(here.urls(), nodeServedWithinMs))
    await load.end()
    await load.verify(here.urls())
  }, testMs)
})
