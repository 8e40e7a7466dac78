/**
 * Fills a folder from an archive. The file `restoring` lies in it from before the first write until
 * after the last one. Only another restore opens such a folder, and begins from nothing.
 */
import { Effect } from "effect"
import { existsSync, writeFileSync } from "node:fs"
import { readdir, rm } from "node:fs/promises"
import { join } from "node:path"
import { StorageCorrupted, StorageLocked, StorageUnavailable } from "../actor/index.ts"
import { asFailure, databasePath, engineOf, isLocked, openDatabase } from "./engine/index.ts"
import { flushFolder, makeFolders } from "./folders.ts"

const markPath = (dataDir: string): string => join(dataDir, "restoring")

/** The names in a data folder, beside the mark. */
const names = ["store", "blobs", "acknowledged", "lock", "engine"]

/** Throws StorageCorrupted when a restore into the folder did not end. */
export const assertWhole = (dataDir: string): void => {
  if (!existsSync(markPath(dataDir))) return
  throw new StorageCorrupted({
    detail: "it was restored in part, because a restore stopped; restore it again"
  })
}

const writeMark = (dataDir: string): void => {
  writeFileSync(markPath(dataDir), `${process.pid}\n`, { flush: true })
  flushFolder(dataDir)
}

/** Rejects with StorageLocked when another process fills the folder now. */
const assertFree = async (dataDir: string): Promise<void> => {
  if (!existsSync(databasePath(dataDir))) return
  try {
    await (await openDatabase(dataDir, engineOf(dataDir) ?? "rocksdb", false)).close()
  } catch (error) {
    // A stopped restore may leave a folder that does not open.
    if (isLocked(error)) throw new StorageLocked({ path: dataDir, pid: undefined })
  }
}

/** Removes the mark durably. */
const unmark = async (dataDir: string): Promise<void> => {
  await rm(markPath(dataDir), { force: true })
  flushFolder(dataDir)
}

const begin = async (dataDir: string): Promise<void> => {
  makeFolders(dataDir)
  const there = await readdir(dataDir)
  const isMarked = existsSync(markPath(dataDir))
  if (!isMarked && there.some((name) => names.includes(name))) {
    throw new StorageUnavailable({
      detail: "there is a store already",
      advice: "restore into an empty folder"
    })
  }
  if (isMarked) await assertFree(dataDir)
  else writeMark(dataDir)
  for (const name of names) await rm(join(dataDir, name), { recursive: true, force: true })
  flushFolder(dataDir)
}

/**
 * Empties the folder and marks it. Fails with StorageUnavailable when it has a store that no
 * stopped restore left.
 */
export const beginRestoring = (dataDir: string) =>
  Effect.tryPromise({
    try: () => begin(dataDir),
    catch: (error) => error instanceof StorageLocked ? error : asFailure(error)
  })

/** Ends the restore: from now on a node can open the folder. */
export const endRestoring = (dataDir: string) =>
  Effect.tryPromise({ try: () => unmark(dataDir), catch: asFailure })
