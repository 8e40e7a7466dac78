import { Effect, Layer } from "effect"
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import { connection } from "../../../runtime/nats/connection/connection.ts"
import { recordOf, recordSubject } from "../../../runtime/nats/records/record-keys.ts"
import { natsRecords } from "../../../runtime/nats/records/records.ts"
import { Records } from "../../../runtime/ports/records.ts"
import { fromLayer } from "../../suites/harness.ts"
import { recordsSuite } from "../../suites/records.ts"
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
    it("reject expected values that another node has changed", async () => {
      const nodes = await Promise.all(
        cluster.urls.slice(0, 2).map((url) =>
          fromLayer(
            Records,
            Layer.provide(natsRecords, connection({ servers: [url], name: url })),
            async () => {}
          )
        )
      )
      const [one, other] = nodes.map(({ api }) => api)
      if (one === undefined || other === undefined) throw new Error("no node")
      const change = (value: string | null) => [{ table: "t", key: "k", value }]
      expect(await run(one.writeIf(change(null), change("1")))).toBe(true)
      expect(await run(one.writeIf(change("1"), change("2")))).toBe(true)
      expect(await run(other.writeIf(change("2"), change("3")))).toBe(true)
      expect(await run(one.writeIf(change("2"), change("4")))).toBe(false)
      expect(await run(one.writeIf(change("3"), change("2")))).toBe(true)
      expect(await run(other.writeIf(change("3"), change("5")))).toBe(false)
      await run(other.write(change("2")))
      // The same again, and yet another one.
      expect(await run(one.writeIf(change("2"), change(null)))).toBe(true)
      expect(await run(one.writeIf(change(null), change("6")))).toBe(true)
      expect(await run(other.get("t", "k"))).toBe("6")
      for (const node of nodes) await node.close()
    })
    it("each show acknowledged writes of others at once", async () => {
      const nodes = await Promise.all(cluster.urls.map((url) =>
        fromLayer(
          Records,
          Layer.provide(natsRecords, connection({ servers: [url], name: url })),
          async () => {}
        )
      ))
      const [writer, ...readers] = nodes.map(({ api }) => api)
      if (writer === undefined) throw new Error("no node")
      const reported = readers.map((reader) => {
        const keys = new Set<string | undefined>()
        reader.watch("quotes", { changing: () => {}, changed: (key) => keys.add(key) })
        return { reader, keys }
      })
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
      const untilCurrent = async ({ isCurrent }: typeof writer) => {
        while (!await run(isCurrent)) await new Promise((resolve) => setTimeout(resolve, 5))
      }
      for (const { keys, reader } of reported) {
        await untilCurrent(reader)
        keys.clear()
        await run(writer.write([{ table: "quotes", key: "bob", value: "" }]))
        await untilCurrent(reader)
        expect([...keys]).toEqual(["bob"])
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
