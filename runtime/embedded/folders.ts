/**
 * Makes folders, and flushes them, so that the names of new files are durable; reads files that may
 * be gone.
 */
import { closeSync, fsyncSync, mkdirSync, openSync, statSync } from "node:fs"
import { open } from "node:fs/promises"
import { dirname } from "node:path"

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

const isFolder = (path: string): boolean =>
  statSync(path, { throwIfNoEntry: false })?.isDirectory() === true

/**
 * Makes a folder and those above it; returns the first that it has made, undefined if all were
 * there. That of Node.js (`recursive`) never ends in a file system that takes no folder, such as
 * `/proc`.
 */
export const makeFolders = (path: string, mode?: number): string | undefined => {
  if (isFolder(path)) return undefined
  const above = dirname(path)
  const first = above === path ? undefined : makeFolders(above, mode)
  try {
    mkdirSync(path, mode === undefined ? {} : { mode })
  } catch (error) {
    if (!isFolder(path)) throw error
  }
  return first ?? path
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
