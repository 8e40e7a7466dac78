/** What a get finds, and its bounds (protocol §5). */
import { Effect, Fiber } from "effect"
import { brotliCompressSync, deflateSync, gzipSync } from "node:zlib"
import { describe, expect, it, vi } from "vitest"
import { bodyBlockBytes, fetchMemoryRetryMs } from "../../../actors/limits.ts"
import { answering, cause, client, patient, quick, receiver, speaking } from "./rig.ts"

describe("a get finds", () => {
  it("the bytes with their type", async () => {
    const at = await answering(200, { "content-type": "text/plain; charset=x" }, "héllo")
    const { get, outbound } = await client()
    const found = await get(`${at.uri}/a?b#c`)
    expect(found).toMatchObject({
      _tag: "Fetched",
      fetched: { uri: `${at.uri}/a?b`, code: 200, type: "text/plain; charset=x" }
    })
    expect(found._tag === "Fetched" && Buffer.from(found.fetched.bytes).toString()).toBe("héllo")
    expect(outbound.metrics().outcomes.Fetched).toBe(1)
  })

  it("nothing, as octets", async () => {
    const at = await answering(204)
    const { get } = await client()
    expect(await get(at.uri)).toMatchObject({
      _tag: "Fetched",
      fetched: { code: 204, type: "application/octet-stream", bytes: Buffer.alloc(0) }
    })
  })

  const encodings = {
    gzip: gzipSync,
    "x-gzip": gzipSync,
    deflate: deflateSync,
    br: brotliCompressSync
  }
  it.each(Object.entries(encodings))("what is within %s", async (encoding, encode) => {
    const at = await receiver((_, response) => {
      response.writeHead(200, { "content-encoding": encoding }).end(encode(Buffer.from("plain")))
    })
    const { get } = await client()
    const found = await get(at.uri)
    expect(found._tag === "Fetched" && Buffer.from(found.fetched.bytes).toString()).toBe("plain")
    expect(at.came[0]?.headers["accept-encoding"]).toBe("identity")
  })

  it.each(Object.entries(encodings))("no bomb in %s", async (encoding, encode) => {
    const bomb = encode(Buffer.alloc(30_000_000))
    const at = await receiver((_, response) => {
      response.writeHead(200, { "content-encoding": encoding }).end(bomb)
    })
    const { get } = await client({ limits: { attemptMs: 20_000 } })
    const problem = "larger than 100000 bytes"
    expect(await get(at.uri, 100_000)).toEqual({ _tag: "PermanentFailure", problem })
  })

  it("exactly as many bytes as it may", async () => {
    for (const encoding of ["identity", "gzip"]) {
      for (const size of [999, 1_000, 1_001]) {
        const plain = Buffer.alloc(size, "x")
        const at = await receiver((_, response) => {
          response.writeHead(200, { "content-encoding": encoding })
            .end(encoding === "gzip" ? gzipSync(plain) : plain)
        })
        const { get } = await client()
        expect([size, (await get(at.uri, 1_000))._tag])
          .toEqual([size, size > 1_000 ? "PermanentFailure" : "Fetched"])
      }
    }
  })
})

/** Memory of so many bytes, and how many of them are in use. */
const memoryOf = (bytesMax: number) => {
  let used = 0
  let most = 0
  return {
    used: () => used,
    most: () => most,
    reserve: (bytes: number) => {
      if (used + bytes > bytesMax) return false
      used += bytes
      most = Math.max(most, used)
      return true
    },
    release: (bytes: number) => void (used -= bytes)
  }
}

describe("the memory of a get", () => {
  const bytesMax = 1024 * 1024
  const nowMs = 1_000_000
  const deferred = { _tag: "Deferred", untilMs: nowMs + fetchMemoryRetryMs }

  it("is that of the bytes that have arrived", async () => {
    const { uri } = await speaking((socket) => {
      socket.once("data", () => socket.write("HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\nx"))
    })
    const { outbound } = await client({ limits: patient })
    const memory = memoryOf(bytesMax)
    const getting = Effect.runFork(outbound.get({ uri, cause, bytesMax, memory }))
    await vi.waitFor(() => expect(memory.used()).toBe(bodyBlockBytes))
    await Effect.runPromise(Fiber.interrupt(getting))
    expect(memory.most()).toBe(bodyBlockBytes)
  })

  it("is the same in whatever chunks a body comes", async () => {
    const body = "0123456789".repeat(20_000)
    const { uri } = await speaking((socket) => {
      socket.once("data", () => {
        const chunks = [...body].map((one) => `1\r\n${one}\r\n`).join("")
        socket.write(`HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${chunks}0\r\n\r\n`)
      })
    })
    const { outbound } = await client({ limits: patient })
    const memory = memoryOf(bytesMax)
    const found = await Effect.runPromise(outbound.get({ uri, cause, bytesMax, memory }))
    expect(found._tag === "Fetched" && Buffer.from(found.fetched.bytes).toString()).toBe(body)
    expect(memory.used()).toBe(Math.ceil(body.length / bodyBlockBytes) * bodyBlockBytes)
  })

  it.each(["identity", "gzip"])("defers it if there is no room for its body (%s)", async (name) => {
    const plain = Buffer.alloc(200_000, "x")
    const bytes = name === "gzip" ? gzipSync(plain) : plain
    const at = await answering(200, { "content-encoding": name }, bytes)
    const { outbound } = await client({ limits: patient, nowMs: () => nowMs })
    const getWith = (roomBytes: number) => {
      const memory = memoryOf(roomBytes)
      const getting = outbound.get({ uri: at.uri, cause, bytesMax, memory })
      return Effect.map(getting, (outcome) => ({ outcome, memory }))
    }
    expect((await Effect.runPromise(getWith(100_000))).outcome).toEqual(deferred)
    const { memory, outcome } = await Effect.runPromise(getWith(bytesMax + bodyBlockBytes))
    expect(outcome._tag).toBe("Fetched")
    expect(memory.used()).toBe(name === "gzip" ? bodyBlockBytes + plain.length : 4 * bodyBlockBytes)
  })
})

describe("a get fails", () => {
  const faulted = (problem: string) => ({ _tag: "RetryableFailure", code: 200, problem })

  it("by more bytes than it says", async () => {
    const { uri } = await speaking((socket) => {
      const more = () => {
        while (!socket.destroyed && socket.write(Buffer.alloc(16_384)));
      }
      socket.once("data", () => socket.write("HTTP/1.1 200 OK\r\n\r\n", more))
      socket.on("drain", more)
    })
    const { get } = await client()
    const problem = "larger than 1000 bytes"
    expect(await get(uri)).toEqual({ _tag: "PermanentFailure", problem })
  })

  it("by a body that drips", async () => {
    const { uri } = await speaking((socket) => {
      socket.once("data", () => {
        socket.write("HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n")
        const drip = setInterval(() => socket.write("x"), 20)
        socket.once("close", () => clearInterval(drip))
      })
    })
    const { get } = await client({ limits: quick })
    expect(await get(uri)).toEqual(faulted("no answer in time"))
  })

  it("by a body that breaks off", async () => {
    const { get } = await client()
    const head = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"
    const cut = await speaking((socket) => socket.once("data", () => socket.end(`${head}x`)))
    expect(await get(cut.uri)).toEqual(faulted("the connection was reset"))
    const reset = await speaking((socket) =>
      socket.once("data", () => socket.write(`${head}x`, () => socket.resetAndDestroy()))
    )
    expect(await get(reset.uri)).toEqual(faulted("the connection was reset"))
  })

  it("by an encoding that is damaged, or not known", async () => {
    const { get } = await client()
    const damaged = await answering(200, { "content-encoding": "gzip" }, "no gzip")
    expect(await get(damaged.uri)).toEqual(faulted("the content encoding is corrupted"))
    for (const encoding of ["zstd", "gzip, gzip", "constructor"]) {
      const unknown = await answering(200, { "content-encoding": encoding }, "x")
      expect(await get(unknown.uri)).toMatchObject({ _tag: "PermanentFailure", code: 200 })
    }
  })

  it("as a post does", async () => {
    const { get } = await client()
    const gone = await answering(410)
    expect(await get(gone.uri)).toEqual({
      _tag: "PermanentFailure",
      code: 410,
      problem: "answered 410"
    })
    const busy = await answering(503, { "retry-after": "1" }, "x".repeat(5_000))
    expect(await get(busy.uri)).toMatchObject({
      _tag: "RetryableFailure",
      code: 503,
      retryAfterMs: 1_000
    })
  })
})

describe("a head finds", () => {
  const headOf = async (uri: string) => {
    const { outbound } = await client()
    return Effect.runPromise(outbound.head({ uri, cause, headers: { "Message-Password": "p" } }))
  }

  it("the types of Accept-Post, with one request that has no body", async () => {
    const at = await answering(200, { "accept-post": "Text/XML, application/xml;q=1" })
    expect(await headOf(at.uri)).toEqual({
      _tag: "Probed",
      acceptPost: ["text/xml", "application/xml"]
    })
    expect(at.came.map(({ headers, method }) => [method, headers["message-password"]]))
      .toEqual([["HEAD", "p"]])
    expect(await headOf((await answering(204)).uri)).toEqual({ _tag: "Probed", acceptPost: [] })
  })

  it("what a post would find: failures, and the redirects of a post", async () => {
    expect(await headOf((await answering(401)).uri)).toMatchObject({ _tag: "PermanentFailure" })
    expect(await headOf((await answering(503)).uri)).toMatchObject({ _tag: "RetryableFailure" })
    const target = await answering(200, { "accept-post": "application/xml" })
    const moved = await answering(302, { location: target.uri })
    expect(await headOf(moved.uri)).toMatchObject({ _tag: "PermanentFailure", code: 302 })
    const same = await answering(307, { location: target.uri })
    expect(await headOf(same.uri)).toMatchObject({ _tag: "Probed" })
  })
})
