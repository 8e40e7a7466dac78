/** The blob port on JetStream: the contract, server failures and garbage collection. */
import { jetstreamManager } from "@nats-io/jetstream"
import { connect } from "@nats-io/transport-node"
import { Effect, Fiber, Layer } from "effect"
import { createHash, randomBytes } from "node:crypto"
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import { blobGarbageTimes } from "../../../runtime/nats/blobs/blob-garbage.ts"
import { natsBlobs } from "../../../runtime/nats/blobs/blobs.ts"
import { connection } from "../../../runtime/nats/connection/connection.ts"
import { NoReply } from "../../../runtime/nats/connection/requests.ts"
import { Blobs, type BlobsApi } from "../../../runtime/ports/blobs.ts"
import { blobsSuite } from "../../suites/blobs.ts"
import { fromLayer, type Harness } from "../../suites/harness.ts"
import { run } from "../../suites/storage-probe.ts"
import { onNats, removeStreams } from "./backend.ts"
import { interceptRequests } from "./intercepted-requests.ts"
import { type NatsCluster, type NatsServer, startCluster, startServer } from "./servers.ts"

const MIB = 1024 * 1024

const wait = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

const until = async (isTrue: () => Promise<boolean>): Promise<void> => {
  while (!await isTrue()) await wait(50)
}

const digestOf = (bytes: Uint8Array): string =>
  createHash("sha256").update(bytes).digest("base64url")

async function* one(bytes: Uint8Array): AsyncIterable<Uint8Array> {
  yield bytes
}

const read = async (blobs: BlobsApi, id: string): Promise<Buffer> => {
  const pieces: Array<Uint8Array> = []
  for await (const piece of await run(blobs.open(id))) pieces.push(piece)
  return Buffer.concat(pieces)
}

/** Messages in the bucket with this key prefix. */
const keysOf = async (url: string, begin: string): Promise<number> => {
  const nc = await connect({ servers: [url] })
  const jsm = await jetstreamManager(nc, { checkAPI: false, timeout: 20_000 })
  const { state } = await jsm.streams.info("KV_blobs", { subjects_filter: `$KV.blobs.${begin}.>` })
  await nc.close()
  return Object.keys(state.subjects ?? {}).length
}

const open = (url: string, times = blobGarbageTimes): Promise<Harness<BlobsApi>> =>
  fromLayer(
    Blobs,
    Layer.provide(natsBlobs(times), connection({ servers: [url], name: "test" })),
    async () => {}
  )

/** A node that loses the first answer to its write of a head. */
const openDeaf = (url: string, meanwhile: () => Promise<unknown>): Promise<Harness<BlobsApi>> => {
  let lost = 0
  const deaf = interceptRequests("$KV.blobs.head.", async (ask, subject) => {
    const reply = await ask()
    if (lost++ > 0) return reply
    await meanwhile()
    throw new NoReply(subject, "timeout")
  }).pipe(Layer.provide(connection({ servers: [url], name: "deaf" })))
  return fromLayer(Blobs, Layer.provide(natsBlobs(), deaf), async () => {})
}

/** A write whose answer was lost counts once, at the time of its storage. */
const checkLostAnswers = async (url: string): Promise<void> => {
  const other = await open(url)
  const [first, second] = [randomBytes(200_000), randomBytes(300_000)]
  await run(other.api.put("one", one(first), MIB))
  const replace = () => run(other.api.put("one", one(second), MIB))
  const remove = () => run(other.api.remove("one"))
  for (const meanwhile of [async () => {}, replace, remove]) {
    const deaf = await openDeaf(url, meanwhile)
    const bytes = randomBytes(250_000)
    await run(deaf.api.put("one", one(bytes), MIB))
    const kept = { digest: digestOf(meanwhile === replace ? second : bytes) }
    const info = await run(other.api.info("one"))
    if (meanwhile === remove) expect(info).toBeUndefined()
    else expect(info).toMatchObject(kept)
    await deaf.close()
  }
  await other.close()
}

describe("one server", () => {
  let server: NatsServer
  beforeAll(async () => {
    server = await startServer()
  })
  afterAll(() => server.close())
  blobsSuite("JetStream", onNats(Blobs, natsBlobs(), () => [server.url]))

  describe("blobs on JetStream", () => {
    const nodes: Array<Harness<BlobsApi>> = []
    const node = async (times = blobGarbageTimes): Promise<BlobsApi> => {
      const harness = await open(server.url, times)
      nodes.push(harness)
      return harness.api
    }
    afterEach(async () => {
      await Promise.all(nodes.splice(0).map(({ close }) => close()))
      await removeStreams([server.url])
    })

    it("shows nothing of an upload that a kill of the server cut", async () => {
      const blobs = await node()
      const kept = randomBytes(MIB)
      await run(blobs.put("kept", one(kept), MIB))
      await run(blobs.put("replaced", one(kept), MIB))
      const endless = async function*() {
        for (;;) yield randomBytes(64 * 1024)
      }
      const uploads = ["new", "replaced"].map((id) =>
        Effect.runFork(blobs.put(id, endless(), Number.MAX_SAFE_INTEGER))
      )
      await until(async () => await keysOf(server.url, "chunk") > 30)
      await server.stop("SIGKILL")
      // The node ends as well.
      await Promise.all(uploads.map((upload) => run(Fiber.interrupt(upload))))
      await Promise.all(nodes.splice(0).map(({ close }) => close()))
      await server.restart()
      const other = await node()
      expect(await run(other.scan(undefined, 10))).toEqual(["kept", "replaced"])
      expect(await run(other.info("new"))).toBeUndefined()
      for (const id of ["kept", "replaced"]) {
        expect((await read(other, id)).equals(kept)).toBe(true)
      }
    })

    it("continues an upload when the server returns", async () => {
      const blobs = await node()
      const bytes = randomBytes(4 * MIB)
      let back = Promise.resolve()
      const stopping = async function*() {
        for (let at = 0; at < bytes.length; at += 50_000) {
          if (at === 2_000_000) {
            await server.stop("SIGKILL")
            back = wait(500).then(() => server.restart())
          }
          yield bytes.subarray(at, at + 50_000)
        }
      }
      const info = await run(blobs.put("one", stopping(), 10 * MIB))
      await back
      expect(info).toEqual({ lengthBytes: bytes.length, digest: digestOf(bytes) })
      expect((await read(blobs, "one")).equals(bytes)).toBe(true)
    })

    it("counts a write once whose answer was lost", () => checkLostAnswers(server.url))

    it("writes and reads 20 MiB with bounded memory", async () => {
      const blobs = await node()
      let heldMax = 0
      let givenBytes = 0
      const hash = createHash("sha256")
      const source = async function*() {
        for (; givenBytes < 20 * MIB; givenBytes += 100_000) {
          const piece = randomBytes(100_000)
          hash.update(piece)
          yield piece
          if (givenBytes % 1_000_000 === 0) {
            const storedBytes = await keysOf(server.url, "chunk") * 128 * 1024
            heldMax = Math.max(heldMax, givenBytes - storedBytes)
          }
        }
      }
      const info = await run(blobs.put("large", source(), 30 * MIB))
      expect(info).toEqual({ lengthBytes: givenBytes, digest: hash.digest("base64url") })
      expect(heldMax).toBeLessThan(MIB)
      const reading = createHash("sha256")
      let pieceMax = 0
      for await (const piece of await run(blobs.open("large"))) {
        reading.update(piece)
        pieceMax = Math.max(pieceMax, piece.length)
      }
      expect(reading.digest("base64url")).toBe(info.digest)
      expect(pieceMax).toBeLessThanOrEqual(128 * 1024)
    })

    it("reads only the requested part of a blob", async () => {
      const blobs = await node()
      await run(blobs.put("large", one(randomBytes(20 * MIB)), 30 * MIB))
      const nc = await connect({ servers: [server.url] })
      let asked = 0
      nc.subscribe("$JS.API.DIRECT.GET.>", { callback: () => void asked++ })
      await nc.flush()
      const part = await run(blobs.open("large", { start: 10 * MIB - 1, end: 10 * MIB }))
      let lengthBytes = 0
      for await (const piece of part) lengthBytes += piece.length
      expect(lengthBytes).toBe(2)
      for await (const piece of await run(blobs.open("large"))) {
        expect(piece.length).toBeGreaterThan(0)
        break
      }
      await nc.flush()
      expect(asked).toBeLessThanOrEqual(4)
      await nc.close()
    })

    it("deletes removed and replaced blobs after a while", async () => {
      const blobs = await node({ ...blobGarbageTimes, readGraceMs: 0 })
      await run(blobs.put("one", one(randomBytes(2_000)), MIB))
      const kept = randomBytes(3_000)
      await run(blobs.put("one", one(kept), MIB))
      await run(blobs.put("two", one(randomBytes(2_000)), MIB))
      await run(blobs.remove("two"))
      await until(async () => await keysOf(server.url, "chunk") === 1)
      expect((await read(blobs, "one")).equals(kept)).toBe(true)
    })

    it("has settled the blobs whose upload began long ago", async () => {
      const young = await node()
      const old = await node({ ...blobGarbageTimes, settledMs: 0 })
      const ids = Array.from({ length: 5 }, (_, at) => `blob=${at}`)
      for (const id of ids) await run(young.put(id, one(randomBytes(10)), MIB))
      expect(await run(young.scanSettled(undefined, 10))).toEqual([])
      expect(await run(old.scanSettled(undefined, 2))).toEqual(ids.slice(0, 2))
      expect(await run(old.scanSettled(ids[1], 10))).toEqual(ids.slice(2))
    })

    it("deletes the chunks of a source that failed", async () => {
      const blobs = await node()
      const breaking = async function*() {
        yield randomBytes(MIB)
        throw new Error("connection reset")
      }
      await run(Effect.flip(blobs.put("one", breaking(), 10 * MIB)))
      await until(async () => await keysOf(server.url, "chunk") === 0)
    })

    it("finds orphaned chunks by a sweep, and spares uploads under way", async () => {
      const leaving = await node()
      await run(leaving.put("replaced", one(randomBytes(MIB)), MIB))
      await run(leaving.put("removed", one(randomBytes(MIB)), MIB))
      await run(leaving.put("replaced", one(randomBytes(MIB)), MIB))
      await run(leaving.remove("removed"))
      expect(await keysOf(server.url, "chunk")).toBe(24)
      // The node that remembers them ends.
      await Promise.all(nodes.splice(0).map(({ close }) => close()))
      const young = await node({ ...blobGarbageTimes, sweepMs: 20 })
      await wait(200)
      expect(await keysOf(server.url, "chunk")).toBe(24)
      const sweeping = await node({ ...blobGarbageTimes, sweepMs: 20, orphanMs: 0 })
      await until(async () => await keysOf(server.url, "chunk") === 8)
      await wait(100)
      expect(await run(sweeping.scan(undefined, 10))).toEqual(["replaced"])
      expect(await read(young, "replaced")).toHaveLength(MIB)
    })
  })
})

describe("three servers", () => {
  let cluster: NatsCluster
  beforeAll(async () => {
    cluster = await startCluster(3)
  })
  afterAll(() => cluster.close())
  blobsSuite("JetStream, three copies", onNats(Blobs, natsBlobs(), () => cluster.urls))

  it("counts a write once whose answer was lost", async () => {
    await checkLostAnswers(cluster.urls[0] ?? "")
    await removeStreams(cluster.urls)
  })

  it("shows acknowledged blobs at every node, and finishes an upload after a kill", async () => {
    const nodes = await Promise.all(cluster.urls.map((url) => open(url)))
    const [writer, ...readers] = nodes.map(({ api }) => api)
    if (writer === undefined) throw new Error("no node")
    const check = async (id: string, bytes: Uint8Array): Promise<void> => {
      for (const reader of readers) expect((await read(reader, id)).equals(bytes)).toBe(true)
    }
    for (let at = 0; at < 20; at++) {
      const bytes = randomBytes(100_000 * (at % 5))
      await run(writer.put("one", one(bytes), MIB))
      await check("one", bytes)
    }
    const bytes = randomBytes(3 * MIB)
    const leader = await cluster.leaderOf("KV_blobs")
    let back: Promise<void> | undefined
    const stopping = async function*() {
      for (let at = 0; at < bytes.length; at += 50_000) {
        if (at === 1_000_000) await leader?.stop("SIGKILL")
        if (at === 1_500_000) back = leader?.restart()
        yield bytes.subarray(at, at + 50_000)
      }
    }
    await run(writer.put("two", stopping(), 10 * MIB))
    await back
    await check("two", bytes)
    for (const node of nodes) await node.close()
    await removeStreams(cluster.urls)
  })
})
