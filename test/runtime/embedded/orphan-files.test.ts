/** The start deletes files that no blob names, except those of this process. */
import { copyFile, mkdir } from "node:fs/promises"
import { join } from "node:path"
import { expect, it, vi } from "vitest"
import { abortOf, blobsPath, fileNames, receive, removeOrphans,
  uploadsPath } from "../../../runtime/embedded/blobs/blob-files.ts"
import { newFolder } from "./folders.ts"

const LENGTH = 100_000

const HOUR_MS = 3_600_000

async function* bytes() {
  yield Buffer.alloc(LENGTH, 7)
}

it.each([-HOUR_MS, 0, HOUR_MS])("whatever the clock says: %i ms", async (offMs) => {
  const folder = await newFolder()
  await mkdir(uploadsPath(folder), { recursive: true })
  const signal = new AbortController().signal
  const { content } = await receive(folder, "new", bytes(), LENGTH, abortOf(signal))
  const name = "file" in content ? content.file : ""
  const at = (suffix: string) => join(blobsPath(folder), name.slice(0, 2), `old.${suffix}`)
  for (const suffix of ["left", "named"]) await copyFile(join(blobsPath(folder), name), at(suffix))
  const clock = vi.spyOn(Date, "now").mockReturnValue(Date.now() + offMs)
  try {
    await removeOrphans(folder, (id, file) => id === "old" && file.endsWith("named"))
  } finally {
    clock.mockRestore()
  }
  const left: Array<string> = []
  for await (const file of fileNames(folder)) left.push(file)
  expect(left.sort()).toEqual([name, join(name.slice(0, 2), "old.named")].sort())
})
