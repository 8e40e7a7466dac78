/** Flushes folders, so that the names of new files are durable; reads files that may be gone. */
import { closeSync, fsyncSync, openSync } from "node:fs"
import { open } from "node:fs/promises"

/** Windows cannot flush folders: the journal of NTFS keeps names. */
const canFlush = process.platform !== "win32"

/** Whether an error says that a file does not exist. */
export const isGone = (error: unknown): boolean =>
  error instanceof Error && "code" in error && error.code === "ENOENT"

/** The result of `read`, or `otherwise` when the file or folder does not exist. */
export const unlessGone = <A, B>(read: () => A, otherwise: B): A | B => {
  try {
    return read()
  } catch (error) {
    if (isGone(error)) return otherwise
    throw error
  }
}

/** Flushes a folder, and blocks meanwhile. */
export const flushFolder = (folder: string): void => {
  if (!canFlush) return
  const file = openSync(folder, "r")
  try {
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}

/** Flushes a folder without blocking. */
export const syncFolder = async (path: string): Promise<void> => {
  if (!canFlush) return
  const folder = await open(path, "r")
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}
