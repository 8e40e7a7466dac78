import { Effect, Layer } from "effect"
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import { connection } from "../../runtime/nats/connection.ts"
import { recordOf, recordSubject } from "../../runtime/nats/record-keys.ts"
import { natsRecords } from "../../runtime/nats/records.ts"
import { Records } from "../../runtime/ports/records.ts"
import { fromLayer } from "../suites/harness.ts"
import { recordsSuite } from "../suites/records.ts"
import { onNats, removeStreams } from "./backend.ts"
import { type NatsCluster, type NatsServer, startCluster, startServer } from "./servers.ts"

const run = Effect.runPromise

describe("one server", () => {
  let server: NatsServer
  beforeAll(async () => {
    server = await startServer()
  })
  afterAll(() => server.close())
  recordsSuite("JetStream", onNats(Records, natsRecords, () => [server.url]))
})

describe("three servers", () => {
  let cluster: NatsCluster
  beforeAll(async () => {
    cluster = await startCluster(3)
  })
  afterAll(() => cluster.close())
  recordsSuite("JetStream, three copies", onNats(Records, natsRecords, () => cluster.urls))

  describe("three nodes", () => {
    afterEach(() => removeStreams(cluster.urls))
    it("each show at once what another acknowledged", async () => {
      const nodes = await Promise.all(cluster.urls.map((url) =>
        fromLayer(
          Records,
          Layer.provide(natsRecords, connection({ servers: [url], name: url })),
          async () => {}
        )
      ))
      const [writer, ...readers] = nodes.map(({ api }) => api)
      if (writer === undefined) throw new Error("no node")
      const expected: Array<string> = []
      for (let at = 0; at < 200; at++) {
        const key = `alice/${String(at).padStart(3, "0")}`
        expected.push(key)
        await run(writer.write([{ table: "quotes", key, value: "" }]))
        if (at % 5 === 4) {
          await run(writer.write([{ table: "quotes", key: expected[0] ?? "", value: null }]))
          expected.shift()
        }
        for (const reader of readers) {
          const rows = await run(reader.range("quotes", { prefix: "alice/", limit: 1_000 }))
          expect(rows.map((row) => row.key)).toEqual(expected)
          expect(await run(reader.get("quotes", key))).toBe("")
        }
      }
      for (const node of nodes) await node.close()
    })
  })
})

describe("the subject of a record", () => {
  it.each(["", "a", "a/b", "a/", "/", "//a", "é🐎", "=41", "a.b *>", "\u0001", "A_-0"])(
    "leads back to %j",
    (key) => {
      const subject = recordSubject("quotes", key)
      expect(recordOf(subject)).toEqual({ table: "quotes", key })
      expect(subject).toMatch(/^\$KV\.records\.quotes(\.[A-Za-z0-9_=-]+)+$/)
    }
  )
})
