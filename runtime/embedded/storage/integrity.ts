/** Opens the database of a folder, and verifies that it has every acknowledged commit. */
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { SHARDS, StorageCorrupted, type StorageFailure, StorageLocked,
  StoreFormatUnsupported } from "../../actor/index.ts"
import { asFailure, chooseEngine, createAcknowledged, type Database, EngineDiffers, EngineMissing,
  type EngineName, openDatabase, readAcknowledged, rootOf, type VerifiedTables,
  writeEngine } from "../engine/index.ts"
import { COMMITS_KEY, FORMAT_KEY } from "../keys.ts"
import { assertWhole } from "../restore.ts"

/** Version of the keys and values. Versions 1 and 2 had other keys of timers. */
const VERSION = 3

/** The value of the format key. A store with another value does not open. */
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

/** Why a folder cannot be opened as a store. */
export type OpenFailure =
  | StorageFailure
  | StorageLocked
  | EngineDiffers
  | EngineMissing
  | StoreFormatUnsupported

/** The typed failure for an error of opening. */
export const openFailure = (dataDir: string, error: unknown): OpenFailure => {
  if (
    error instanceof StorageLocked || error instanceof EngineDiffers ||
    error instanceof EngineMissing || error instanceof StoreFormatUnsupported
  ) return error
  const { code, detail } = rootOf(error)
  if (code === "LEVEL_LOCKED") return new StorageLocked({ path: dataDir, pid: holderOf(dataDir) })
  const failure = asFailure(error)
  // The bindings report a missing table or manifest as an input/output error.
  const lost = /No such file|cannot find|Corruption|does not exist/.test(detail)
  return failure._tag === "StorageUnavailable" && lost ? new StorageCorrupted({ detail }) : failure
}

const corrupted = (detail: string): never => {
  throw new StorageCorrupted({ detail })
}

/** The count of commits in the database. Throws if the format differs or commits are missing. */
const verifiedCommits = (dataDir: string, database: Database): number => {
  const [format, count] = database.getTexts([FORMAT_KEY, COMMITS_KEY])
  if (format !== undefined && format !== FORMAT) {
    throw new StoreFormatUnsupported({
      found: `format ${format}`,
      supported: `format ${FORMAT}`
    })
  }
  const acknowledged = readAcknowledged(dataDir)
  const commits = Number(count ?? 0)
  if (acknowledged === null) corrupted("the file `acknowledged` is unreadable")
  else if (acknowledged !== undefined && commits < acknowledged) {
    corrupted(
      "the log was truncated or corrupted: it has " +
        `${commits} of ${acknowledged} acknowledged commits`
    )
  } else if (acknowledged === undefined && count !== undefined) {
    corrupted("the file `acknowledged` is missing: the log cannot be verified")
  }
  if (format === undefined && count !== undefined) corrupted("the store's format is missing")
  return commits
}

/** How a folder is opened. */
export interface Opening {
  /** Creates a store where there is none. */
  readonly create: boolean
  /** The caller fills the store from an archive. */
  readonly restoring: boolean
  /** The database that the folder must have. */
  readonly wanted: EngineName | undefined
  /** Tables that an earlier opening verified. */
  readonly verified?: VerifiedTables
}

/**
 * Opens and verifies the database of `dataDir`. Rejects with an {@link OpenFailure}. A store that
 * was restored only in part is StorageCorrupted, unless `restoring`.
 */
export const openVerified = async (
  dataDir: string,
  { create, restoring, verified, wanted }: Opening
): Promise<{ readonly database: Database; readonly commits: number }> => {
  if (!restoring) assertWhole(dataDir)
  const engine = await chooseEngine(dataDir, wanted)
  if (create) writeEngine(dataDir, engine)
  // The file `acknowledged` proves that there was a database: a new one would delete the rest.
  const isNew = create && readAcknowledged(dataDir) === undefined
  const database = await openDatabase(dataDir, engine, isNew, verified).catch((error: unknown) => {
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
