/**
 * Which database a folder stands on. It is chosen once, at the first start, and written down in the
 * file `engine`; a native module that is not chosen is never loaded.
 */
import { Schema } from "effect"
import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { StorageCorrupted } from "../../actor/index.ts"
import { viewMemtableBytes } from "../../limits.ts"
import { flushFolder } from "../folders.ts"
import { acknowledgedPath } from "./acknowledgement.ts"
import { type Database, type EngineName, engineNames, rootOf } from "./engine.ts"
import { openLeveldb } from "./leveldb.ts"
import { loadRocksdb, openRocksdb } from "./rocksdb.ts"

export const databasePath = (dataDir: string): string => join(dataDir, "store")

const notePath = (dataDir: string): string => join(dataDir, "engine")

/** The folder was made upon another database than the one that is insisted on. */
export class EngineDiffers extends Schema.TaggedError<EngineDiffers>()("EngineDiffers", {
  path: Schema.String,
  found: Schema.Literals(engineNames),
  wanted: Schema.Literals(engineNames)
}) {}

/** The native module of a database has no binary that runs here. */
export class EngineMissing extends Schema.TaggedError<EngineMissing>()("EngineMissing", {
  engine: Schema.Literals(engineNames),
  /** Why none of the others is taken. */
  reason: Schema.Literals(["insisted", "found", "none"]),
  detail: Schema.String
}) {}

const loaders: Readonly<Record<EngineName, () => Promise<unknown>>> = {
  // A promise, so that it rejects where it throws.
  rocksdb: async () => loadRocksdb(),
  leveldb: () => import("classic-level")
}

const openers: Readonly<
  Record<EngineName, (path: string, createIfMissing: boolean) => Promise<Database>>
> = { rocksdb: openRocksdb, leveldb: openLeveldb }

/** With less memory, where it has much by itself. */
const viewOpeners: Readonly<Record<EngineName, (path: string) => Promise<Database>>> = {
  rocksdb: (path) => openRocksdb(path, true, viewMemtableBytes),
  leveldb: (path) => openLeveldb(path, true)
}

/**
 * What the folder was made upon; undefined when there is no store. Folders from before there was a
 * choice have RocksDB. Throws StorageCorrupted when the file `engine` names none.
 */
export const engineOf = (dataDir: string): EngineName | undefined => {
  if (existsSync(notePath(dataDir))) {
    const text = readFileSync(notePath(dataDir), "utf8").trim()
    const name = engineNames.find((one) => one === text)
    if (name !== undefined) return name
    throw new StorageCorrupted({ detail: "the file `engine` names no database" })
  }
  const isThere = existsSync(databasePath(dataDir)) || existsSync(acknowledgedPath(dataDir))
  return isThere ? "rocksdb" : undefined
}

const load = async (engine: EngineName, reason: EngineMissing["reason"]): Promise<void> => {
  try {
    await loaders[engine]()
  } catch (error) {
    throw new EngineMissing({ engine, reason, detail: rootOf(error).detail })
  }
}

/** The first that can be loaded. */
const firstThere = async (): Promise<EngineName> => {
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
 * The database that the folder has, or is to have. Rejects with EngineDiffers when `wanted` is
 * another, EngineMissing when it cannot be loaded.
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
  if (engine === undefined) return firstThere()
  await load(engine, wanted === undefined ? "found" : "insisted")
  return engine
}

/** Writes the choice down, durably, unless it is there. */
export const noteEngine = (dataDir: string, engine: EngineName): void => {
  const path = notePath(dataDir)
  if (existsSync(path)) return
  const arriving = `${path}.tmp`
  try {
    writeFileSync(arriving, `${engine}\n`, { flush: true })
    renameSync(arriving, path)
  } catch (error) {
    rmSync(arriving, { force: true })
    throw error
  }
  flushFolder(dataDir)
}

/** Opens the database of a folder. Rejects with the binding's own error. */
export const openDatabase = (
  dataDir: string,
  engine: EngineName,
  createIfMissing: boolean
): Promise<Database> => openers[engine](databasePath(dataDir), createIfMissing)

/**
 * The database for a view: `wanted`, or the first that can be loaded. Rejects with EngineMissing
 * where there is none.
 */
export const viewEngine = async (wanted: EngineName | undefined): Promise<EngineName> => {
  if (wanted === undefined) return firstThere()
  await load(wanted, "insisted")
  return wanted
}

/** Opens the database of a view, which is made where there is none. Rejects as the other does. */
export const openViewDatabase = (path: string, engine: EngineName): Promise<Database> =>
  viewOpeners[engine](path)
