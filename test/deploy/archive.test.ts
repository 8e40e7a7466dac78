/** Archives without a process: a round trip preserves everything, and corruption is rejected. */
import { Effect, Fiber } from "effect"
import fc from "fast-check"
import { createHash } from "node:crypto"
import { describe, expect, it } from "vitest"
import { ArchiveCorrupted, Decoder, Encoder, headerOf } from "../../deploy/archive/format.ts"
import { type ArchivePart, Counter } from "../../deploy/archive/parts.ts"
import { readAll } from "../../deploy/archive/store-reader.ts"
import { writeParts } from "../../deploy/archive/store-writer.ts"
import { withProgress } from "../../deploy/cli/archive.ts"
import { address } from "../../runtime/index.ts"
import { makeMemoryBlobs } from "../../runtime/memory/blobs.ts"
import { makeMemoryRecords } from "../../runtime/memory/records.ts"
import { makeMemoryStorage } from "../../runtime/memory/storage.ts"
import type { ActorPart } from "../../runtime/ports/contents.ts"

const box = (id: string) => address("box", id)

const items = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, at) => ({ n: from + at, value: `é ${from + at}\n` }))

const actor = (id: string, more: Partial<ActorPart> = {}): ActorPart => ({
  _tag: "Actor",
  address: box(id),
  state: `state of ${id}`,
  head: 0,
  timer: undefined,
  items: [],
  removed: [],
  steady: true,
  ...more
})

const digestOf = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("base64url")

const large = Buffer.alloc(200_000, "large blob\n")

async function* pieces(bytes: Uint8Array, lostAt = Infinity): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += 50_000) {
    if (at >= lostAt) throw new Error("it was removed")
    yield bytes.subarray(at, at + 50_000)
  }
}

const blob = (id: string, bytes: Uint8Array, lostAt?: number): ArchivePart => ({
  _tag: "Blob",
  id,
  lengthBytes: bytes.length,
  digest: digestOf(bytes),
  bytes: pieces(bytes, lostAt)
})

async function* everything(): AsyncGenerator<ArchivePart> {
  yield actor("plain", { timer: 17 })
  yield actor("small", { head: 9, items: items(3, 5) })
  yield { _tag: "Items", address: box("long"), items: items(2, 900) }
  yield { _tag: "Items", address: box("long"), items: items(905, 1_000) }
  yield actor("long", { head: 1_003, items: items(1_002, 1_002), removed: [2, 500], timer: 5 })
  yield actor("bare", { state: undefined, head: 3, items: items(1, 3), timer: 6 })
  yield { _tag: "Items", address: box("bare-long"), items: items(1, 700) }
  yield actor("bare-long", { state: undefined, head: 700 })
  yield { _tag: "Items", address: box("gone"), items: items(1, 3) }
  yield actor("gone", { state: undefined, removed: [1, 2, 3] })
  yield actor("woken", { state: undefined, timer: 8 })
  yield actor("unsteady", { steady: false })
  yield { _tag: "Record", table: "names", key: "é/1", value: "\u2028 line\n" }
  yield blob("empty=x", Buffer.alloc(0))
  yield blob("small=x", Buffer.from("{\"end\":true}\n"))
  yield blob("lost=x", large, 100_000)
  yield blob("large=x", large)
}

const encoded = async (): Promise<{ readonly bytes: Buffer; readonly encoder: Encoder }> => {
  const encoder = new Encoder()
  const all: Array<Buffer> = []
  for await (const piece of encoder.encode(headerOf("1", "embedded", 0), everything())) {
    all.push(piece)
  }
  return { bytes: Buffer.concat(all), encoder }
}

async function* cut(bytes: Buffer, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

const counted = async (bytes: Buffer, size = 65_536) => {
  const decoder = new Decoder(cut(bytes, size))
  const counter = new Counter()
  await readAll(decoder.parts(), (part) => counter.add(part))
  return { counter, decoder }
}

describe("an archive", () => {
  it("preserves its parts, however its bytes are split", async () => {
    const { bytes, encoder } = await encoded()
    const { counts } = encoder.counter
    expect(counts).toMatchObject({ actors: { box: 4 }, timers: 4, records: 1, blobs: 3 })
    expect(counts.logItems).toBe(3 + 899 + 96 + 1 - 2 + 3 + 700)
    expect(encoder.counter).toMatchObject({ removedBlobs: 1, changedActors: 1 })
    for (const size of [1_000, 65_536, bytes.length]) {
      const { counter, decoder } = await counted(bytes, size)
      expect(counter.counts).toEqual(counts)
      expect(decoder.trailer).toMatchObject({ counts, unsteady: 1 })
    }
  })

  it("fills a store with the same numbers, heads, timers and bytes", async () => {
    const { bytes } = await encoded()
    const [storage, records, blobs] = [makeMemoryStorage(), makeMemoryRecords(), makeMemoryBlobs()]
    await writeParts({ storage, records, blobs }, new Decoder(cut(bytes, 9_999)).parts(), () => {})
    const run = Effect.runPromise
    const numbers = async (id: string) =>
      (await run(storage.read(box(id), 0, 10_000))).map(({ n }) => n)
    const range = (from: number, to: number) => items(from, to).map(({ n }) => n)
    expect(await run(storage.load(box("small")))).toMatchObject({
      state: "state of small",
      head: 9
    })
    expect(await run(storage.read(box("small"), 0, 9))).toEqual(items(3, 5))
    expect(await run(storage.load(box("long")))).toMatchObject({
      head: 1_003,
      state: "state of long"
    })
    expect(await numbers("long")).toEqual([
      ...range(3, 499),
      ...range(501, 900),
      ...range(905, 1_000),
      1_002
    ])
    expect(await run(storage.load(box("bare")))).toMatchObject({ state: undefined, head: 3 })
    expect(await numbers("bare")).toEqual([1, 2, 3])
    expect(await run(storage.load(box("bare-long")))).toMatchObject({ state: undefined, head: 700 })
    expect(await numbers("bare-long")).toEqual(range(1, 700))
    expect(await run(storage.load(box("gone")))).toMatchObject({ state: undefined, head: 0 })
    expect(await numbers("gone")).toEqual([])
    const shards = Array.from({ length: 256 }, (_, shard) => shard)
    const timers = await Promise.all(shards.map((shard) => run(storage.timers(shard, 10))))
    const found = timers.flatMap((one) =>
      one.timers.map(({ address, atMs }) => [address.id, atMs] as const)
    )
    expect(new Map(found)).toEqual(
      new Map([["plain", 17], ["long", 5], ["bare", 6], ["woken", 8]])
    )
    expect(await run(records.get("names", "é/1"))).toBe("\u2028 line\n")
    expect(await run(blobs.scan(undefined, 9))).toEqual(["empty=x", "large=x", "small=x"])
    expect(await run(blobs.info("large=x"))).toMatchObject({ digest: digestOf(large) })
  })

  it("is rejected when it is truncated anywhere, or any byte is changed", async () => {
    const { bytes } = await encoded()
    const at = fc.oneof(
      fc.nat({ max: bytes.length - 1 }),
      fc.nat({ max: 2_000 }),
      fc.nat({ max: 600 }).map((n) => bytes.length - 1 - n)
    )
    const refused = async (spoiled: Buffer): Promise<void> => {
      await expect(counted(spoiled)).rejects.toThrow()
    }
    await fc.assert(fc.asyncProperty(at, (n) => refused(bytes.subarray(0, n))), { numRuns: 30 })
    await fc.assert(
      fc.asyncProperty(at, fc.integer({ min: 1, max: 255 }), async (n, change) => {
        const spoiled = Buffer.from(bytes)
        spoiled[n] = (spoiled[n] ?? 0) ^ change
        await refused(spoiled)
      }),
      { numRuns: 60 }
    )
  })

  it("is rejected with the name of the fault", async () => {
    const { bytes } = await encoded()
    const text = bytes.toString("latin1")
    const wrong: ReadonlyArray<readonly [string, RegExp]> = [
      ["", /truncated/],
      ["{\"hello\":1}\n", /not an archive of restante/],
      [text.replace("\"format\":1", "\"format\":2"), /format 2/],
      [text.replace("\"shards\":256", "\"shards\":64"), /64 shards/],
      [`${text}{}\n`, /follows its end/],
      [text.replace("state of plain", "state of plaiN"), /checksum/],
      [text.slice(0, text.lastIndexOf("{\"end\"")), /truncated/]
    ]
    for (const [spoiled, message] of wrong) {
      const failure = await counted(Buffer.from(spoiled, "latin1")).catch((error: unknown) => error)
      expect(failure).toBeInstanceOf(ArchiveCorrupted)
      expect(failure).toMatchObject({ detail: expect.stringMatching(message) })
    }
  })
})

it("fails its command when a signal interrupts it", async () => {
  const before = process.exitCode
  await Effect.runPromise(withProgress(() => Effect.void))
  const after = process.exitCode
  const fiber = Effect.runFork(withProgress(() => Effect.never))
  await Effect.runPromise(Effect.andThen(Effect.yieldNow, Fiber.interrupt(fiber)))
  const brokenOff = process.exitCode
  process.exitCode = before
  expect([after, brokenOff]).toEqual([undefined, 1])
})
