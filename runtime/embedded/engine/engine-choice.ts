/**
 * Which database a folder uses. The first start chooses it and writes it to the file `engine`. The
 * native module of the other database is never loaded.
 */
import { Schema } from "effect"
import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { StorageCorrupted } from "../../actor/index.ts"
import { viewMemtableBytes } from "../../limits.ts"
import { flushFolder } from "../folders.ts"
import { acknowledgedPath } from "./acknowledgement.ts"
import { type Database, type EngineName, engineNames, rootOf } from "./engine.ts"
import type { VerifiedTables } from "./leveldb-files.ts"
import { openLeveldb } from "./leveldb.ts"
import { loadRocksdb, openRocksdb } from "./rocksdb.ts"

export const databasePath = (dataDir: string): string => join(dataDir, "store")

const enginePath = (dataDir: string): string => join(dataDir, "engine")

/** The folder has another database than the wanted one. */
export class EngineDiffers extends Schema.TaggedError<EngineDiffers>()("EngineDiffers", {
  path: Schema.String,
  found: Schema.Literals(engineNames),
  wanted: Schema.Literals(engineNames)
}) {}

/** The native module of a database has no binary for this machine. */
export class EngineMissing extends Schema.TaggedError<EngineMissing>()("EngineMissing", {
  engine: Schema.Literals(engineNames),
  /** Why no other database is possible: it is wanted, the folder has it, or none runs here. */
  reason: Schema.Literals(["wanted", "found", "none"]),
  detail: Schema.String
}) {}

/**
 * The database of a folder; undefined when there is no store. A store without a file `engine` has
 * RocksDB. Throws StorageCorrupted when the file `engine` names no database.
 */
export const engineOf = (dataDir: string): EngineName | undefined => {
  if (existsSync(enginePath(dataDir))) {
    const text = readFileSync(enginePath(dataDir), "utf8").trim()
    const name = engineNames.find((one) => one === text)
    if (name !== undefined) return name
    throw new StorageCorrupted({ detail: "the file `engine` names no database" })
  }
  const hasStore = existsSync(databasePath(dataDir)) || existsSync(acknowledgedPath(dataDir))
  return hasStore ? "rocksdb" : undefined
}

const load = async (engine: EngineName, reason: EngineMissing["reason"]): Promise<void> => {
  try {
    if (engine === "rocksdb") loadRocksdb()
    else await import("classic-level")
  } catch (error) {
    throw new EngineMissing({ engine, reason, detail: rootOf(error).detail })
  }
}

/** The first database that can be loaded. */
const firstLoadable = async (): Promise<EngineName> => {
  const [first, second] = engineNames
  try {
    await load(first, "found")
    return first
  } catch {
    await load(second, "none")
    return second
  }
}

/**
 * Chooses the database of a folder: the one that it has, else `wanted`, else the first that can be
 * loaded. Rejects with EngineDiffers or EngineMissing.
 */
export const chooseEngine = async (
  dataDir: string,
  wanted: EngineName | undefined
): Promise<EngineName> => {
  const found = engineOf(dataDir)
  if (found !== undefined && wanted !== undefined && found !== wanted) {
    throw new EngineDiffers({ path: dataDir, found, wanted })
  }
  const engine = found ?? wanted
  if (engine === undefined) return firstLoadable()
  await load(engine, wanted === undefined ? "found" : "wanted")
  return engine
}

/** Writes the file `engine` durably, unless it exists. */
export const writeEngine = (dataDir: string, engine: EngineName): void => {
  const path = enginePath(dataDir)
  if (existsSync(path)) return
  const temporary = `${path}.tmp`
  try {
    writeFileSync(temporary, `${engine}\n`, { flush: true })
    renameSync(temporary, path)
  } catch (error) {
    rmSync(temporary, { force: true })
    throw error
  }
  flushFolder(dataDir)
}

/**
 * Opens the database of a folder. A reopening passes the tables that an earlier one `verified`.
 * Rejects with the binding's own error.
 */
export const openDatabase = (
  dataDir: string,
  engine: EngineName,
  createIfMissing: boolean,
  verified?: VerifiedTables
): Promise<Database> => {
  const path = databasePath(dataDir)
  return engine === "rocksdb"
    ? openRocksdb(path, createIfMissing)
    : openLeveldb(path, createIfMissing, verified)
}

/** The database for a view: `wanted`, else the first that can be loaded, else EngineMissing. */
export const viewEngine = async (wanted: EngineName | undefined): Promise<EngineName> => {
  if (wanted === undefined) return firstLoadable()
  await load(wanted, "wanted")
  return wanted
}

/**
 * Opens or creates the database of a view, which needs less memory than a store. Rejects with the
 * binding's own error.
 */
export const openViewDatabase = (path: string, engine: EngineName): Promise<Database> =>
  engine === "rocksdb" ? openRocksdb(path, true, viewMemtableBytes) : openLeveldb(path, true)
