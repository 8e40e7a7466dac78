/** Opening the store of a folder, and whether it is whole. */
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { SHARDS, StorageCorrupted, type StorageFailure, StorageLocked,
  StorageUnavailable } from "../../actor/index.ts"
import { asFailure, chooseEngine, createAcknowledged, type Database, EngineDiffers, EngineMissing,
  type EngineName, noteEngine, openDatabase, readAcknowledged, rootOf } from "../engine/index.ts"
import { COMMITS_KEY, FORMAT_KEY } from "../keys.ts"
import { assertWhole } from "../restore.ts"

/** Version of the keys and values; another one is not read. */
const VERSION = 1

export const FORMAT = JSON.stringify({ version: VERSION, shards: SHARDS })

const lockPath = (dataDir: string): string => join(dataDir, "lock")

const holderOf = (dataDir: string): number | undefined => {
  try {
    const pid = Number(readFileSync(lockPath(dataDir), "utf8"))
    return Number.isSafeInteger(pid) && pid > 0 ? pid : undefined
  } catch {
    return undefined
  }
}

export type OpenFailure = StorageFailure | StorageLocked | EngineDiffers | EngineMissing

/** An error of opening: whatever is not a full disk or a lock means that parts do not fit. */
export const openFailure = (dataDir: string, error: unknown): OpenFailure => {
  if (error instanceof StorageLocked) return error
  if (error instanceof EngineDiffers || error instanceof EngineMissing) return error
  const { code, detail } = rootOf(error)
  if (code === "LEVEL_LOCKED") return new StorageLocked({ path: dataDir, pid: holderOf(dataDir) })
  const failure = asFailure(error)
  // A table or manifest that is gone is called an input/output error, by its text alone.
  const lost = /No such file|cannot find|Corruption|does not exist/.test(detail)
  return failure._tag === "StorageUnavailable" && lost ? new StorageCorrupted({ detail }) : failure
}

const corrupted = (detail: string): never => {
  throw new StorageCorrupted({ detail })
}

/** The count of commits, after comparing what is there with what was acknowledged. */
const verifiedCommits = (dataDir: string, database: Database): number => {
  const [format, count] = database.getTexts([FORMAT_KEY, COMMITS_KEY])
  const acknowledged = readAcknowledged(dataDir)
  const commits = Number(count ?? 0)
  if (acknowledged === null) corrupted("the file `acknowledged` is unreadable")
  else if (acknowledged !== undefined && commits < acknowledged) {
    corrupted(
      "the log was cut or corrupted: it holds " +
        `${commits} of ${acknowledged} acknowledged commits`
    )
  } else if (acknowledged === undefined && count !== undefined) {
    corrupted("the file `acknowledged` is missing: the log cannot be verified")
  }
  if (format !== undefined && format !== FORMAT) {
    throw new StorageUnavailable({ detail: `the store is of another format: ${format}` })
  }
  if (format === undefined && count !== undefined) corrupted("the store's format is missing")
  return commits
}

/** How a folder is opened. */
export interface Opening {
  /** Makes a store where there is none. */
  readonly create: boolean
  /** It is being filled from an archive by the caller. */
  readonly restoring: boolean
  /** The database that is insisted on. */
  readonly wanted: EngineName | undefined
}

/**
 * Opens and verifies the database of `dataDir`. Throws what opening fails with; StorageCorrupted also
 * for a store that was restored in part, unless it is just being restored.
 */
export const openVerified = async (
  dataDir: string,
  { create, restoring, wanted }: Opening
): Promise<{ readonly database: Database; readonly commits: number }> => {
  if (!restoring) assertWhole(dataDir)
  const engine = await chooseEngine(dataDir, wanted)
  if (create) noteEngine(dataDir, engine)
  // Where commits were counted there was a database: making a new one would delete what is left.
  const isNew = create && readAcknowledged(dataDir) === undefined
  const database = await openDatabase(dataDir, engine, isNew).catch((error: unknown) => {
    throw openFailure(dataDir, error)
  })
  try {
    writeFileSync(lockPath(dataDir), String(process.pid))
    const commits = verifiedCommits(dataDir, database)
    if (readAcknowledged(dataDir) === undefined) createAcknowledged(dataDir)
    return { database, commits }
  } catch (error) {
    await database.close()
    throw openFailure(dataDir, error)
  }
}
