/** The nodes of a cluster have one key of stored secrets, also while it is rotated. */
import { afterAll, beforeAll, expect, it } from "vitest"
import { cleanUp, keyFile, launch, type Service, start } from "../../e2e/process.ts"
import { type NatsServer, startServer } from "./servers.ts"

const configuration = 78

const [one, two] = ["one", "two"].map((fill) => Buffer.alloc(32, fill).toString("base64"))

let nats: NatsServer

beforeAll(async () => {
  nats = await startServer()
})

afterAll(async () => {
  cleanUp()
  await nats?.close()
})

const withKeys = (name: string, ...keys: ReadonlyArray<string | undefined>) => ({
  env: {
    NATS_URL: nats.url,
    CLUSTER_BUCKETS: "1",
    NODE_ID: name,
    SECRET_KEY_FILE: keyFile(...keys.map((key) => key ?? ""))
  }
})

const isRefused = async (options: ReturnType<typeof withKeys>, text: string): Promise<void> => {
  const node = launch(options)
  expect((await node.end()).code).toBe(configuration)
  expect(node.output).toContain(text)
}

it("refuses a node with another key, and rotates in two steps", async () => {
  const first: Service = await start(withKeys("first", one))
  await isRefused(withKeys("second", two), "is not that of the cluster")
  // The other nodes could not read what this one encrypts.
  await isRefused(withKeys("second", two, one), "is not known to the other nodes")
  const second = await start(withKeys("second", one, two))
  expect((await first.stop()).code).toBe(0)
  const again = await start(withKeys("first", two, one))
  expect((await second.stop()).code).toBe(0)
  // The service's own key is under the new key by now.
  await isRefused(withKeys("second", one), "the store has secrets under the key")
  const last = await start(withKeys("second", two))
  expect((await fetch(`${last.url}/readyz`)).status).toBe(200)
  expect((await again.stop()).code).toBe(0)
  expect((await last.stop()).code).toBe(0)
})
