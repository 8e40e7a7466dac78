/**
 * RocksDB's logs, write-ahead ones and manifests (db/log_format.h of RocksDB). At a record whose
 * type is that of recycled logs, in a log that has not begun so, RocksDB reads the same place again
 * for ever (facebook/rocksdb#13333). No log here is recycled, so such a type is corruption, and one
 * changed bit makes it of the usual one. It is looked for before RocksDB reads.
 */
import { closeSync, openSync, readdirSync, readFileSync, readSync } from "node:fs"
import { join } from "node:path"
import { StorageCorrupted } from "../../actor/index.ts"
import { rocksdbLogReadBytes } from "../../limits.ts"
import { unlessGone } from "../folders.ts"
import { crc32c, masked } from "./leveldb-files.ts"

const BLOCK_BYTES = 32 * 1024

/** Checksum (u32), length (u16) and type (u8), before each record, which is within its block. */
const HEADER_BYTES = 7

const [FULL, LAST] = [1, 4]

/** Whole, first, middle and last of a recycled log, and what it says of time stamps. */
const RECYCLED = new Set([5, 6, 7, 8, 11])

/** What is known of a log from the blocks that were read. */
interface Progress {
  hasRecord: boolean
  isRecycled: boolean
}

/**
 * Where RocksDB would stay in a block, as `progress` has it. `exactly`: as RocksDB does, which
 * passes over the rest of a block from the first corrupted record on; else wherever it could be.
 */
const stuckIn = (block: Buffer, progress: Progress, exactly: boolean): number | undefined => {
  for (let at = 0; at + HEADER_BYTES <= block.length;) {
    const [length, type] = [block.readUInt16LE(at + 4), block.readUInt8(at + 6)]
    if (RECYCLED.has(type)) {
      progress.isRecycled = exactly && !progress.hasRecord
      return progress.isRecycled ? undefined : at
    }
    const end = at + HEADER_BYTES + length
    if (end > block.length || (type === 0 && length === 0)) return undefined
    const isWhole = !exactly ||
      masked(crc32c(block.subarray(at + 6, end))) === block.readUInt32LE(at)
    if (!isWhole) return undefined
    progress.hasRecord ||= type === FULL || type === LAST
    at = end
  }
  return undefined
}

/** The blocks of a file in one buffer that is used again, some at a time. */
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

const stuckInLog = (path: string, exactly: boolean): number | undefined => {
  const progress: Progress = { hasRecord: false, isRecycled: false }
  for (const [from, bytes] of piecesOf(path)) {
    for (let at = 0; at < bytes.length; at += BLOCK_BYTES) {
      const found = stuckIn(bytes.subarray(at, at + BLOCK_BYTES), progress, exactly)
      if (found !== undefined) return from + at + found
      if (progress.isRecycled) return undefined
    }
  }
  return undefined
}

/** The byte at which RocksDB would read a log for ever; undefined when it comes to its end. */
export const stuckAt = (path: string): number | undefined =>
  // Checksums take time: they are looked at where there is something to find only.
  stuckInLog(path, false) === undefined ? undefined : stuckInLog(path, true)

/** The names of the logs in its folder that RocksDB may read. */
const logsIn = (folder: string): ReadonlyArray<string> => {
  const names = readdirSync(folder)
  // Without it, or with another text, RocksDB says itself what is wrong.
  const current = names.includes("CURRENT")
    ? readFileSync(join(folder, "CURRENT"), "latin1").trim()
    : ""
  return names.filter((name) => name.endsWith(".log") || name === current)
}

/** Throws StorageCorrupted when RocksDB would never come to the end of a log in its folder. */
export const assertReadable = (folder: string): void => {
  // There may be no folder yet, and whoever has the database open puts logs away.
  for (const name of unlessGone(() => logsIn(folder), [])) {
    const at = unlessGone(() => stuckAt(join(folder, name)), undefined)
    if (at !== undefined) {
      throw new StorageCorrupted({
        detail: `${name} is corrupted at byte ${at}: the type of a record`
      })
    }
  }
}
