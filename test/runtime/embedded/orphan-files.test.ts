/** The start deletes files that no blob names, except those of this run; and settled blobs. */
import { Effect } from "effect"
import { copyFile, mkdir } from "node:fs/promises"
import { join } from "node:path"
import { expect, it, vi } from "vitest"
import { abortOf, blobsPath, fileNames, receive, removeOrphans,
  uploadsPath } from "../../../runtime/embedded/blobs/blob-files.ts"
import { engineNames } from "../../../runtime/embedded/index.ts"
import { Blobs } from "../../../runtime/ports/blobs.ts"
import { newFolder, withStore } from "./folders.ts"

const LENGTH = 100_000

const HOUR_MS = 3_600_000

async function* bytes(length = LENGTH) {
  yield Buffer.alloc(length, 7)
}

it.each([-HOUR_MS, 0, HOUR_MS])("whatever the clock says: %i ms", async (offMs) => {
  const folder = await newFolder()
  await mkdir(uploadsPath(folder), { recursive: true })
  const signal = new AbortController().signal
  const { content } = await receive(
    { dataDir: folder, run: "run", id: "new" },
    bytes(),
    LENGTH,
    abortOf(signal)
  )
  const name = "file" in content ? content.file : ""
  const at = (suffix: string) => join(blobsPath(folder), name.slice(0, 2), `old.${suffix}`)
  for (const suffix of ["left", "named"]) await copyFile(join(blobsPath(folder), name), at(suffix))
  const clock = vi.spyOn(Date, "now").mockReturnValue(Date.now() + offMs)
  try {
    await removeOrphans(folder, "run", (id, file) => id === "old" && file.endsWith("named"))
  } finally {
    clock.mockRestore()
  }
  const left: Array<string> = []
  for await (const file of fileNames(folder)) left.push(file)
  expect(left.sort()).toEqual([name, join(name.slice(0, 2), "old.named")].sort())
})

it.each(engineNames)("settles the blobs of earlier runs (%s)", async (engine) => {
  const folder = await newFolder(engine)
  const put = (id: string, length: number) =>
    Effect.flatMap(Blobs, (blobs) => blobs.put(id, bytes(length), LENGTH))
  const settled = (after?: string, limit = 10) =>
    Effect.flatMap(Blobs, (blobs) => blobs.scanSettled(after, limit))
  const first = Effect.gen(function*() {
    yield* put("a", 10)
    yield* put("b", LENGTH)
    yield* put("c", 10)
    return yield* settled()
  })
  expect(await withStore(folder, first)).toEqual([])
  const second = Effect.gen(function*() {
    yield* put("b", 10)
    yield* put("d", 10)
    return [yield* settled(), yield* settled(undefined, 1), yield* settled("a", 1)]
  })
  expect(await withStore(folder, second)).toEqual([["a", "c"], ["a"], ["c"]])
  expect(await withStore(folder, settled())).toEqual(["a", "b", "c", "d"])
})

it.each(engineNames)("does not list confirmed blobs again (%s)", async (engine) => {
  const folder = await newFolder(engine)
  const ids = Array.from({ length: 1_200 }, (_, n) => `id-${n}`)
  const withBlobs = <A, E>(use: (blobs: Blobs["Service"]) => Effect.Effect<A, E>) =>
    withStore(folder, Effect.flatMap(Blobs, use))
  const confirmed = ids.filter((_, n) => n % 10 !== 0)
  await withBlobs((blobs) =>
    Effect.gen(function*() {
      for (const id of ids) yield* blobs.put(id, bytes(10), LENGTH)
      for (const id of confirmed.slice(0, -1)) yield* blobs.confirm(id)
      // The next upload removes the marks of those that are left.
      yield* blobs.put("last", bytes(10), LENGTH)
      for (const id of confirmed.slice(-1)) yield* blobs.confirm(id)
    })
  )
  const left = [...ids.filter((_, n) => n % 10 === 0), ...confirmed.slice(-1), "last"].sort()
  expect(await withBlobs((blobs) => blobs.scanSettled(undefined, 10_000))).toEqual(left)
  // What is removed is not listed either, and a confirmation keeps the bytes.
  const [first = ""] = left
  expect(
    await withBlobs((blobs) =>
      Effect.gen(function*() {
        yield* blobs.remove(first)
        return [yield* blobs.scanSettled(undefined, 1), yield* blobs.info(confirmed[0] ?? "")]
      })
    )
  ).toMatchObject([left.slice(1, 2), { lengthBytes: 10 }])
})
