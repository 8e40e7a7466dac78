/**
 * A byte changed, or everything from it on cut or zeroed, in any file of a store that was killed:
 * it is refused as corrupted, or all that was acknowledged is there, or `inspect` names a fault.
 */
import { Effect, Exit } from "effect"
import { createHash } from "node:crypto"
import { cp, readdir, readFile, rm, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { address } from "../../../runtime/actor/address.ts"
import { BlobAborted, StorageCorrupted } from "../../../runtime/actor/errors.ts"
import { embedded, type EngineName, engineNames, inspect } from "../../../runtime/embedded/index.ts"
import { Blobs } from "../../../runtime/ports/blobs.ts"
import { Storage } from "../../../runtime/ports/storage.ts"
import { randomOf } from "../../disk/seeds.ts"
import { note } from "../../results.ts"
import { commitOf, itemsOf } from "../../suites/storage-probe.ts"
import { newFolder, withStore } from "./folders.ts"

const long = process.env["TEST_LONG"] === "1"

const SPOILED = 30

/** In the long form every byte of what is smaller, and so many of what is not. */
const OFFSETS_MAX = long ? 1_500 : Infinity

const SECTOR = 512

const COMMITS = 30

const alice = address("mailbox", "alice")

async function* bytes(length: number) {
  yield Buffer.alloc(length, "content")
}

const digestOf = (parts: ReadonlyArray<Uint8Array>) => {
  const hash = createHash("sha256")
  for (const part of parts) hash.update(part)
  return hash.digest("hex")
}

const append = (n: number) =>
  Effect.flatMap(Storage, (storage) => storage.commit([commitOf({ append: itemsOf(n, n) })]))

/** Half of it in tables, the rest in the log, as a crash leaves it. */
const crashed = async (engine: EngineName): Promise<string> => {
  const [running, after] = [await newFolder(engine), await newFolder()]
  await withStore(
    running,
    Effect.gen(function*() {
      const blobs = yield* Blobs
      yield* blobs.put("large", bytes(70_000), 1e6)
      for (let n = 1; n <= COMMITS / 2; n++) yield* append(n)
    })
  )
  await withStore(
    running,
    Effect.gen(function*() {
      const blobs = yield* Blobs
      for (let n = COMMITS / 2 + 1; n < COMMITS; n++) yield* append(n)
      yield* blobs.put("small", bytes(700), 1e6)
      yield* append(COMMITS)
      yield* Effect.promise(() => cp(running, after, { recursive: true }))
    })
  )
  return after
}

/** All that is in it, as text; fails as the ports do. */
const contents = Effect.gen(function*() {
  const [storage, blobs] = [yield* Storage, yield* Blobs]
  const { head } = yield* storage.load(alice)
  const items: Array<unknown> = []
  // In pages, so that most reads end before the end of the log.
  for (let from = 1; from <= head; from += 7) {
    items.push(...yield* storage.read(alice, from, Math.min(7, head - from + 1)))
  }
  const digests: Array<string> = []
  for (const id of ["large", "small"]) {
    const chunks = yield* blobs.open(id)
    const parts = yield* Effect.tryPromise({
      try: async () => {
        const all: Array<Uint8Array> = []
        for await (const chunk of chunks) all.push(chunk)
        return all
      },
      catch: (error) =>
        error instanceof BlobAborted || error instanceof StorageCorrupted
          ? error
          : new BlobAborted({ detail: "" })
    })
    digests.push(digestOf(parts))
  }
  return JSON.stringify({ head, items, digests })
})

const kinds = ["flipped", "cut", "zeroed"] as const

type Kind = typeof kinds[number]

const corrupt = (whole: Buffer, at: number, kind: Kind): Buffer => {
  if (kind === "cut") return whole.subarray(0, at)
  const corrupted = Buffer.from(whole)
  if (kind === "zeroed") return corrupted.fill(0, at, Math.min(at + SECTOR, whole.length))
  corrupted.writeUInt8((corrupted.readUInt8(at) ^ (1 << (at % 8))) & 0xff, at)
  return corrupted
}

interface Corruption {
  readonly name: string
  readonly at: number
  readonly kind: Kind
}

const filesIn = async (folder: string): Promise<ReadonlyArray<readonly [string, Buffer]>> => {
  const names = (await readdir(folder, { recursive: true, withFileTypes: true }))
    // Nothing is read of these.
    .filter((entry) => entry.isFile() && !/^(LOG|LOCK|OPTIONS|IDENTITY|lock)/.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
  return Promise.all(names.map(async (name) => [name, await readFile(join(folder, name))] as const))
}

/** A few of them, or in the long form all that there is time for. */
const corruptions = (files: ReadonlyArray<readonly [string, Buffer]>, seed: string) => {
  const random = randomOf(seed)
  const one = (
    [name, { length }]: readonly [string, Buffer],
    at = random() * length
  ): Corruption => ({
    name,
    at: Math.floor(at),
    kind: kinds[Math.floor(random() * kinds.length)] ?? "flipped"
  })
  const full = files.filter(([, whole]) => whole.length > 0)
  if (!long) {
    return Array.from({ length: SPOILED }, (_, n) => full[n % full.length]).flatMap(
      (file) => file === undefined ? [] : [one(file)]
    )
  }
  return full.flatMap((file) => {
    const step = Math.max(1, file[1].length / OFFSETS_MAX)
    return Array.from({ length: Math.floor(file[1].length / step) }, (_, n) => one(file, n * step))
  })
}

describe.each(engineNames)("a store with random corruption, %s", (engine) => {
  it("is refused, or has everything", { timeout: long ? 3_600_000 : 120_000 }, async () => {
    const folder = await crashed(engine)
    const pristine = await newFolder()
    await cp(folder, pristine, { recursive: true })
    const all = await withStore(pristine, contents)
    const files = new Map(await filesIn(folder))
    const found = { refused: 0, named: 0, whole: 0 }
    const wrong: Array<string> = []
    const tried = corruptions([...files], `corrupted ${engine}`)
    for (const { at, kind, name } of tried) {
      const what = `${name} ${kind} at ${at}`
      const copy = await newFolder()
      await cp(folder, copy, { recursive: true })
      await writeFile(join(copy, name), corrupt(files.get(name) ?? Buffer.alloc(0), at, kind))
      const exit = await Effect.runPromiseExit(Effect.provide(contents, embedded(copy)))
      if (Exit.isSuccess(exit)) {
        if (exit.value === all) found.whole++
        else if ((await Effect.runPromise(inspect(copy))).faults.length > 0) found.named++
        else wrong.push(`${what}: ${exit.value.slice(0, 200)}`)
      } else {
        const [reason] = exit.cause.reasons
        const failure = reason?._tag === "Fail" ? reason.error : undefined
        const isClear = failure?._tag === "StorageCorrupted" || failure?._tag === "BlobAborted"
        if (isClear && failure.detail !== "") found.refused++
        else wrong.push(`${what}: ${String(exit.cause)}`)
      }
      await rm(copy, { recursive: true, force: true })
    }
    expect(wrong).toEqual([])
    expect(found.refused).toBeGreaterThan(0)
    note({
      name: `a corrupted byte, sector or end of a file, ${engine}`,
      runs: 1,
      faults: tried.length,
      operations: tried.length * (COMMITS + 2)
    })
  })
})
