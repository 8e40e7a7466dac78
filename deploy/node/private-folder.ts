/** Whether others than its owner can read a folder. */
import { Effect } from "effect"
import { statSync } from "node:fs"

const ofOthers = 0o077

/** The permissions of a folder; 0 for one that cannot be looked at, which the start finds out. */
const modeOf = (folder: string): number => {
  try {
    return statSync(folder).mode & 0o777
  } catch {
    return 0
  }
}

/** What an operator should do about a folder that others may read; undefined for no such folder. */
export const openToOthers = (folder: string): string | undefined => {
  const permissions = modeOf(folder)
  if ((permissions & ofOthers) === 0) return undefined
  const mode = permissions.toString(8)
  return `${folder} has mode ${mode}, and others could read its secrets: chmod 700 ${folder}`
}

/** Warns of a folder of data that others may read. A new one is made for its owner alone. */
export const warnOfOpenFolder = (folder: string): Effect.Effect<void> =>
  Effect.suspend(() => {
    const problem = openToOthers(folder)
    return problem === undefined ? Effect.void : Effect.logWarning(problem)
  })
