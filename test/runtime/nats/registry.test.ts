/** The registry in the bucket `cluster`. */
import { jetstreamManager } from "@nats-io/jetstream"
import { connect } from "@nats-io/transport-node"
import { Effect, Exit, Layer, Result, Scope } from "effect"
import { afterAll, afterEach, beforeAll, expect, it, vi } from "vitest"
import { registryServerSwitchMs } from "../../../runtime/limits.ts"
import { connection, Nats } from "../../../runtime/nats/connection/connection.ts"
import { natsRegistry } from "../../../runtime/nats/registry/registry.ts"
import { Registry, type RegistryEntry } from "../../../runtime/ports/registry.ts"
import { fromLayer } from "../../suites/harness.ts"
import { registrySuite } from "../../suites/registry.ts"
import { run } from "../../suites/storage-probe.ts"
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

it("continues a watch after a restart of the server", async () => {
  const { api, close } = await opened()
  const reported = new Map<string, RegistryEntry>()
  const scope = await run(Scope.make())
  await run(Scope.provide(api.watch((entry) => reported.set(entry.key, entry)), scope))
  // An attempt without an answer may have been kept: then the next one finds the key.
  const put = (key: string) =>
    Effect.catchTag(api.put(key, "1", 0), "RegistryMoved", () => Effect.void)
  await run(Effect.retry(put("before"), { times: 5 }))
  await server.restart()
  await run(Effect.retry(put("after"), { times: 20 }))
  await expect.poll(() => reported.get("after")?.value, { timeout: 60_000 }).toBe("1")
  await run(Scope.close(scope, Exit.void))
  await close()
})

it("waits while the servers refuse to create its bucket", async () => {
  const own = await startServer()
  const nats = connection({ servers: [own.url], name: "test" })
  // As servers do that have not all joined: another stream with its subjects is refused at once.
  const nc = await connect({ servers: [own.url] })
  const { streams } = await jetstreamManager(nc)
  await streams.add({ name: "OTHER", subjects: ["$KV.cluster.>"] })
  const opening = fromLayer(Registry, Layer.provide(natsRegistry, nats), async () => {})
  const first = await Promise.race([
    opening.then(() => "opened", () => "failed"),
    new Promise((resolve) => setTimeout(resolve, 3_000, "waits"))
  ])
  expect(first).toBe("waits")
  await streams.delete("OTHER")
  await nc.close()
  const { api, close } = await opening
  expect(await run(api.put("node.a", "1", 0))).toBeGreaterThan(0)
  await close()
  await own.close()
})

/** The outcome of a write long after the previous one, and the connection's reaction. */
const writtenLate = async (
  jetstream: string,
  before: (nats: Nats["Service"]) => Promise<void>
) => {
  const own = await startServer({ jetstream })
  const program = Effect.gen(function*() {
    const nats = yield* Nats
    const registry = yield* Registry
    const seen: Array<string> = []
    void (async () => {
      for await (const { type } of nats.nc.status()) seen.push(type)
    })()
    yield* registry.put("node.a", "1", 0)
    yield* Effect.promise(() => before(nats))
    const late = performance.now.bind(performance)
    vi.spyOn(performance, "now").mockImplementation(() => late() + 2 * registryServerSwitchMs)
    const refused = yield* Effect.result(registry.put("node.b", "1", 0))
    // It breaks off where the connection turns to another server.
    yield* Effect.promise(() => nats.nc.flush().catch(() => undefined))
    return { refused: Result.isFailure(refused) ? refused.failure : undefined, seen }
  })
  const nats = connection({ servers: [own.url], name: "test" })
  const ports = Layer.provideMerge(natsRegistry, nats)
  const outcome = await run(Effect.provide(program, ports))
  await own.close()
  return outcome
}

it("stays with a server that rejects writes because its disk is full", async () => {
  const { refused, seen } = await writtenLate(
    "max_file_store: 256KB",
    async ({ jsm, request }) => {
      await jsm.streams.add({ name: "FULL", subjects: ["full"] })
      const publish = () => request("full", Buffer.alloc(100_000), undefined, 5_000)
      while (!(await publish()).string().includes("error")) { /* Until there is no room. */ }
    }
  )
  expect(refused).toMatchObject({
    _tag: "StorageUnavailable",
    detail: expect.stringMatching(/resource|storage/)
  })
  expect(seen).not.toContain("forceReconnect")
})

it("leaves a server that knows no leader of the registry", async () => {
  const { refused, seen } = await writtenLate(
    "",
    async ({ jsm }) => void await jsm.streams.delete("KV_cluster")
  )
  expect(refused).toMatchObject({
    _tag: "StorageUnavailable",
    detail: expect.stringContaining("no responders")
  })
  expect(seen).toContain("forceReconnect")
})
