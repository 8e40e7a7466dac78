/** Two processes with one NODE_ID: the second starts only if the first was killed. */
import { afterAll, beforeAll, expect, it } from "vitest"
import { cleanUp, launch, type Service, start } from "../../e2e/process.ts"
import { type NatsServer, startServer } from "./servers.ts"

let nats: NatsServer

let env: Readonly<Record<string, string>>

let first: Service

beforeAll(async () => {
  nats = await startServer()
  env = { NATS_URL: nats.url, CLUSTER_BUCKETS: "1", NODE_ID: "twin" }
  first = await start({ env })
})

afterAll(async () => {
  cleanUp()
  await nats?.close()
})

it("ends the second one with a message about NODE_ID, without effect on the first", async () => {
  const second = launch({ env })
  expect(await second.ended).toMatchObject({ code: 75 })
  expect(second.output).toContain("another process is the node twin of the cluster on NATS at")
  expect(second.output).toContain("NODE_ID")
  expect((await fetch(`${first.url}/readyz`)).status).toBe(200)
})

it("restarts a killed node at once on its machine", async () => {
  await first.kill()
  const second = await start({ env: { ...env, BASE_URL: "" } })
  expect((await fetch(`${second.url}/readyz`)).status).toBe(200)
  expect(first.output).not.toContain("BASE_URL")
  expect(second.output).toContain("BASE_URL is not set")
})
