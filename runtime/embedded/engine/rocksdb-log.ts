/**
 * Checks the logs of RocksDB, write-ahead logs and manifests, before RocksDB reads them. In a log
 * that does not begin with a record of a recycled log, RocksDB rereads such a record forever
 * (facebook/rocksdb#13333). No log here is recycled, so such a type is corruption: one flipped bit
 * of the usual type.
 */
import { closeSync, openSync, readdirSync, readFileSync, readSync } from "node:fs"
import { join } from "node:path"
import { StorageCorrupted } from "../../actor/index.ts"
import { rocksdbLogReadBytes } from "../../limits.ts"
import { unlessGone } from "../folders.ts"
import { blockBytes, maskedCrc32c, recordHeaderBytes, recordType } from "./log-format.ts"

/** Full, first, middle and last record of a recycled log, and its record of timestamp sizes. */
const RECYCLED = new Set([5, 6, 7, 8, 11])

/** What the blocks of a log that were read so far contain. */
interface LogProgress {
  hasRecord: boolean
  isRecycled: boolean
}

/**
 * The position in a block at which RocksDB would loop. With `verify`, corrupted records end the
 * block, as they do for RocksDB; without it, RocksDB may never read that position.
 */
const stuckInBlock = (
  block: Buffer,
  progress: LogProgress,
  verify: boolean
): number | undefined => {
  for (let at = 0; at + recordHeaderBytes <= block.length;) {
    const [length, type] = [block.readUInt16LE(at + 4), block.readUInt8(at + 6)]
    if (RECYCLED.has(type)) {
      progress.isRecycled = verify && !progress.hasRecord
      return progress.isRecycled ? undefined : at
    }
    const end = at + recordHeaderBytes + length
    if (end > block.length || (type === 0 && length === 0)) return undefined
    if (verify && maskedCrc32c(block.subarray(at + 6, end)) !== block.readUInt32LE(at)) {
      return undefined
    }
    progress.hasRecord ||= type === recordType.full || type === recordType.last
    at = end
  }
  return undefined
}

/** The contents of a file, in pieces of whole blocks that share one buffer. */
function* piecesOf(path: string): Generator<readonly [at: number, bytes: Buffer]> {
  const buffer = Buffer.allocUnsafe(rocksdbLogReadBytes)
  const file = openSync(path, "r")
  try {
    for (let at = 0, length = Infinity; length > 0; at += length) {
      length = readSync(file, buffer, 0, buffer.length, at)
      yield [at, buffer.subarray(0, length)]
    }
  } finally {
    closeSync(file)
  }
}

const stuckInLog = (path: string, verify: boolean): number | undefined => {
  const progress: LogProgress = { hasRecord: false, isRecycled: false }
  for (const [from, bytes] of piecesOf(path)) {
    for (let at = 0; at < bytes.length; at += blockBytes) {
      const found = stuckInBlock(bytes.subarray(at, at + blockBytes), progress, verify)
      if (found !== undefined) return from + at + found
      if (progress.isRecycled) return undefined
    }
  }
  return undefined
}

/** The byte at which RocksDB would read a log forever; undefined when it reaches the end. */
export const stuckAt = (path: string): number | undefined =>
  // Checksums take time: most logs hold no such type at all.
  stuckInLog(path, false) === undefined ? undefined : stuckInLog(path, true)

/** The names of the logs in a folder that RocksDB may read. */
const logsIn = (folder: string): ReadonlyArray<string> => {
  const names = readdirSync(folder)
  // RocksDB itself reports a missing or wrong CURRENT.
  const current = names.includes("CURRENT")
    ? readFileSync(join(folder, "CURRENT"), "latin1").trim()
    : ""
  return names.filter((name) => name.endsWith(".log") || name === current)
}

/** Throws StorageCorrupted when RocksDB would never reach the end of a log in this folder. */
export const assertReadable = (folder: string): void => {
  // The folder may be missing, and a process that has the database open removes logs.
  for (const name of unlessGone(() => logsIn(folder), [])) {
    const at = unlessGone(() => stuckAt(join(folder, name)), undefined)
    if (at === undefined) continue
    throw new StorageCorrupted({
      detail: `${name} is corrupted at byte ${at}: the type of a record`
    })
  }
}
