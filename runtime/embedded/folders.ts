/** What a folder lists: flushed, so that the name of a new file is durable; or gone. */
import { closeSync, fsyncSync, openSync } from "node:fs"
import { open } from "node:fs/promises"

/** Windows has no flush of folders: NTFS keeps names by its journal. */
const canFlush = process.platform !== "win32"

/** Whether what was opened is not there. */
export const isGone = (error: unknown): boolean =>
  error instanceof Error && "code" in error && error.code === "ENOENT"

/** What a file or folder is read as, and `otherwise` where there is none. */
export const unlessGone = <A, B>(read: () => A, otherwise: B): A | B => {
  try {
    return read()
  } catch (error) {
    if (isGone(error)) return otherwise
    throw error
  }
}

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
