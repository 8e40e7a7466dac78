/** The registry in the bucket `cluster`. */
import { Effect, Exit, Layer, Result, Scope } from "effect"
import { afterAll, afterEach, beforeAll, expect, it, vi } from "vitest"
import { connection, Nats } from "../../runtime/nats/connection.ts"
import { TURN_AWAY_MS } from "../../runtime/nats/limits.ts"
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
afterEach(() => void vi.restoreAllMocks())

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

it("stays with a server that refuses since there is no room", async () => {
  const small = await startServer({ jetstream: "max_file_store: 256KB" })
  const nats = connection({ servers: [small.url], name: "test" })
  const program = Effect.gen(function*() {
    const { jsm, nc, request } = yield* Nats
    const registry = yield* Registry
    const seen: Array<string> = []
    void (async () => {
      for await (const { type } of nc.status()) seen.push(type)
    })()
    yield* registry.put("node.a", "1", 0)
    yield* Effect.promise(async () => {
      await jsm.streams.add({ name: "FULL", subjects: ["full"] })
      const publish = () => request("full", Buffer.alloc(100_000), undefined, 5_000)
      while (!(await publish()).string().includes("error")) { /* Until there is no room. */ }
    })
    const late = performance.now.bind(performance)
    vi.spyOn(performance, "now").mockImplementation(() => late() + 2 * TURN_AWAY_MS)
    const refused = yield* Effect.result(registry.put("node.b", "1", 0))
    yield* Effect.promise(() => nc.flush())
    return { refused, seen }
  })
  const ports = Layer.provideMerge(natsRegistry, nats)
  const { refused, seen } = await run(Effect.provide(program, ports))
  expect(Result.isFailure(refused) && refused.failure).toMatchObject({
    _tag: "StorageUnavailable",
    detail: expect.stringMatching(/resource|storage/)
  })
  expect(seen).not.toContain("forceReconnect")
  await small.close()
})
