/** Whether others than its owner can read a folder, or what is directly in it. */
import { Effect } from "effect"
import { readdirSync, statSync } from "node:fs"
import { join } from "node:path"
import { openEntriesNamedMax } from "../limits.ts"

const ofOthers = 0o077

/** The permissions of a path; 0 for one that cannot be looked at, which the start finds out. */
const modeOf = (path: string): number => {
  try {
    return statSync(path).mode & 0o777
  } catch {
    return 0
  }
}

const isOpen = (path: string): boolean => (modeOf(path) & ofOthers) !== 0

const entriesOf = (folder: string): ReadonlyArray<string> => {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}

/** What to do about the folder itself. */
const openFolder = (folder: string): ReadonlyArray<string> => {
  if (!isOpen(folder)) return []
  const mode = modeOf(folder).toString(8)
  return [`${folder} has mode ${mode}, and others could read its secrets: chmod 700 ${folder}`]
}

/**
 * What to do about files and folders directly in it. They matter although the folder is closed: a
 * copy of it, or a later change of its mode, shows them.
 */
const openEntries = (folder: string): ReadonlyArray<string> => {
  const names = entriesOf(folder).filter((name) => isOpen(join(folder, name))).toSorted()
  if (names.length === 0) return []
  const shown = names.slice(0, openEntriesNamedMax)
    .map((name) => `${name} (mode ${modeOf(join(folder, name)).toString(8)})`)
  const more = names.length - shown.length
  const all = [...shown, ...more === 0 ? [] : [`${more} more`]].join(", ")
  return [`in ${folder}, others could read ${all}: chmod -R go= ${folder}`]
}

/**
 * What an operator should do about a folder that others may read, or that has files or folders
 * directly in it which they may read; undefined for no such folder.
 */
export const openToOthers = (folder: string): string | undefined => {
  const problems = [...openFolder(folder), ...openEntries(folder)]
  return problems.length === 0 ? undefined : problems.join("; ")
}

/**
 * Warns of a folder of data that others may read, or that has such files. The service makes the
 * folder and everything in it for its owner alone.
 */
export const warnOfOpenFolder = (folder: string): Effect.Effect<void> =>
  Effect.suspend(() => {
    const problem = openToOthers(folder)
    return problem === undefined ? Effect.void : Effect.logWarning(problem)
  })
