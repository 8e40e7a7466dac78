import { Effect, Layer } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { connection } from "../../runtime/nats/connection.ts"
import { natsStorage } from "../../runtime/nats/storage.ts"
import { Storage } from "../../runtime/ports/storage.ts"
import { storageSuite } from "../suites/storage.ts"
import { onNats, removeStreams } from "./backend.ts"
import { type NatsCluster, type NatsServer, startCluster, startServer } from "./servers.ts"

describe("one server", () => {
  let server: NatsServer
  beforeAll(async () => {
    server = await startServer()
  })
  afterAll(() => server.close())
  const urls = () => [server.url]
  storageSuite("JetStream", onNats(Storage, natsStorage(), urls))

  it("keeps the number of buckets that the cluster was made with", async () => {
    const open = (buckets?: number) =>
      Effect.runPromiseExit(Effect.provide(
        Effect.void,
        natsStorage(buckets === undefined ? {} : { buckets }).pipe(
          Layer.provide(connection({ servers: urls(), name: "test" }))
        )
      ))
    for (const made of [1, 3]) {
      expect((await open(made))._tag).toBe("Success")
      expect((await open())._tag).toBe("Success")
      expect(JSON.stringify(await open(2))).toMatch(`"found":"${made} buckets, 256 shards"`)
      await removeStreams(urls())
    }
    expect((await open(65))._tag).toBe("Failure")
  })
})

describe("three servers", () => {
  let cluster: NatsCluster
  beforeAll(async () => {
    cluster = await startCluster(3)
  })
  afterAll(() => cluster.close())
  const urls = () => cluster.urls
  storageSuite("JetStream, three copies", onNats(Storage, natsStorage({ buckets: 2 }), urls))
})
