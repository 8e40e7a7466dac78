/** The registry in the bucket `cluster`. */
import { Effect, Exit, Layer, Scope } from "effect"
import { afterAll, beforeAll, expect, it } from "vitest"
import { connection } from "../../runtime/nats/connection.ts"
import { natsRegistry } from "../../runtime/nats/registry.ts"
import { Registry, type RegistryEntry } from "../../runtime/ports/registry.ts"
import { fromLayer } from "../suites/harness.ts"
import { registrySuite } from "../suites/registry.ts"
import { run } from "../suites/storage-probe.ts"
import { removeStreams } from "./backend.ts"
import { type NatsServer, startServer } from "./servers.ts"

let server: NatsServer
beforeAll(async () => {
  server = await startServer()
})
afterAll(() => server.close())

const opened = () => {
  const nats = connection({ servers: [server.url], name: "test" })
  return fromLayer(Registry, Layer.provide(natsRegistry, nats), async () => {})
}

registrySuite("NATS", async () => {
  await removeStreams([server.url])
  return opened()
})

it("goes on watching over a restart of the server", async () => {
  const { api, close } = await opened()
  const told = new Map<string, RegistryEntry>()
  const scope = await run(Scope.make())
  await run(Scope.provide(api.watch((entry) => told.set(entry.key, entry)), scope))
  await run(Effect.retry(api.put("before", "1", 0), { times: 5 }))
  await server.restart()
  await run(Effect.retry(api.put("after", "1", 0), { times: 20 }))
  await expect.poll(() => told.get("after")?.value, { timeout: 20_000 }).toBe("1")
  await run(Scope.close(scope, Exit.void))
  await close()
})
