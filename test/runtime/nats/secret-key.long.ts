/** The nodes of a cluster have one key of stored secrets, also while it is rotated. */
import { afterAll, beforeAll, expect, it } from "vitest"
import { cleanUp, keyFile, launch, type Service, start } from "../../e2e/process.ts"
import { run } from "../../deploy/cli-harness.ts"
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

/** What `restante doctor` finds of the key of a node. */
const examined = async (name: string, ...keys: ReadonlyArray<string | undefined>) => {
  const { env } = withKeys(name, ...keys)
  const { stdout } = await run(["doctor", "--json"], env).ended
  const findings: ReadonlyArray<{ readonly name: string }> = JSON.parse(stdout)
  return findings.find((one) => one.name === "secret key")
}

it("is compared by the doctor with that of the cluster", async () => {
  expect(await examined("new", two)).toMatchObject({
    state: "ok",
    found: expect.stringContaining("the cluster has no key yet")
  })
  const node = await start(withKeys("first", one))
  expect(await examined("same", one)).toMatchObject({
    state: "ok",
    found: expect.stringContaining("is known to the cluster")
  })
  expect(await examined("other", two)).toMatchObject({
    state: "fail",
    found: expect.stringContaining("is not that of the cluster"),
    advice: expect.stringContaining("SECRET_KEY_FILE")
  })
  expect(await examined("early", two, one)).toMatchObject({
    state: "fail",
    found: expect.stringContaining("is not known to the other nodes")
  })
  expect(await examined("broken", "no key")).toMatchObject({
    state: "fail",
    found: expect.stringContaining("cannot be used as the key")
  })
  expect((await node.stop()).code).toBe(0)
})

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
