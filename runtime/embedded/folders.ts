/** Flushing what a folder lists, so that the name of a new file is durable. */
import { closeSync, fsyncSync, openSync } from "node:fs"

/** Windows has no flush of folders: NTFS keeps names by its journal. */
export const canFlush = process.platform !== "win32"

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
