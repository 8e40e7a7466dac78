/** Flushing what a folder lists, so that the name of a new file is durable. */
import { closeSync, fsyncSync, openSync } from "node:fs"
import { open } from "node:fs/promises"

/** Windows has no flush of folders: NTFS keeps names by its journal. */
const canFlush = process.platform !== "win32"

/** Blocks for one flush. */
export const flushFolder = (folder: string): void => {
  if (!canFlush) return
  const file = openSync(folder, "r")
  try {
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}

/** The same beside the event loop. */
export const syncFolder = async (path: string): Promise<void> => {
  if (!canFlush) return
  const folder = await open(path, "r")
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}
