/**
 * Filling a folder from an archive. A mark lies in it from before the first write until after the
 * last, and nothing opens a folder with such a mark but the next restoring, which begins anew.
 */
import { Effect } from "effect"
import { closeSync, existsSync, fsyncSync, openSync, writeSync } from "node:fs"
import { mkdir, readdir, rm } from "node:fs/promises"
import { join } from "node:path"
import { StorageCorrupted, StorageLocked, StorageUnavailable } from "../actor/index.ts"
import { asFailure, databasePath, engineOf, isLocked, openDatabase } from "./engine/index.ts"
import { flushFolder } from "./folders.ts"

const markPath = (dataDir: string): string => join(dataDir, "restoring")

/** What belongs to a store, beside the mark. */
const parts = ["store", "blobs", "acknowledged", "lock", "engine"]

/** Throws StorageCorrupted when the folder was filled in part. */
export const assertWhole = (dataDir: string): void => {
  if (!existsSync(markPath(dataDir))) return
  throw new StorageCorrupted({
    detail: "it was restored in part, as restoring was broken off; restore it again"
  })
}

const writeMark = (dataDir: string): void => {
  const file = openSync(markPath(dataDir), "w")
  try {
    writeSync(file, `${process.pid}\n`)
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
  flushFolder(dataDir)
}

/** Fails with StorageLocked when another process fills the folder just now. */
const assertFree = async (dataDir: string): Promise<void> => {
  if (!existsSync(databasePath(dataDir))) return
  try {
    await (await openDatabase(dataDir, engineOf(dataDir) ?? "rocksdb", false)).close()
  } catch (error) {
    // Anything else may be what a broken-off restoring left.
    if (isLocked(error)) throw new StorageLocked({ path: dataDir, pid: undefined })
  }
}

/** Removes the mark: what was written counts, or nothing was. */
const unmark = async (dataDir: string): Promise<void> => {
  await rm(markPath(dataDir), { force: true })
  flushFolder(dataDir)
}

const begin = async (dataDir: string): Promise<void> => {
  await mkdir(dataDir, { recursive: true })
  const there = await readdir(dataDir)
  const isMarked = existsSync(markPath(dataDir))
  if (!isMarked && there.some((name) => parts.includes(name))) {
    throw new StorageUnavailable({ detail: "there is a store already: only a new one is filled" })
  }
  if (isMarked) await assertFree(dataDir)
  else writeMark(dataDir)
  for (const name of parts) await rm(join(dataDir, name), { recursive: true, force: true })
  flushFolder(dataDir)
}

/**
 * Makes the folder ready to be filled: empty, and marked. Fails with StorageUnavailable when there
 * is a store that was not broken off while it was filled.
 */
export const beginRestoring = (dataDir: string) =>
  Effect.tryPromise({
    try: () => begin(dataDir),
    catch: (error) => error instanceof StorageLocked ? error : asFailure(error)
  })

/** The folder is filled, durably, and can be served. */
export const endRestoring = (dataDir: string) =>
  Effect.tryPromise({ try: () => unmark(dataDir), catch: asFailure })
