/**
 * Verifies the files of a LevelDB folder before LevelDB opens it. LevelDB skips corrupted log
 * records in silence, checks no table, and may end the process when it reads a corrupted one. The
 * binding has no option for paranoid checks, and its `repair` drops what it cannot read.
 */
import { closeSync, fstatSync, openSync, readdirSync, readFileSync, readSync,
  statSync } from "node:fs"
import { readFile } from "node:fs/promises"
import { createRequire } from "node:module"
import { dirname, join } from "node:path"
import { unlessGone } from "../folders.ts"
import { blockBytes, maskedCrc32c, recordHeaderBytes, recordType } from "./log-format.ts"

const require = createRequire(import.meta.url)

// The package has no types: this is the one function that is used.
const { uncompress } = require("snappyjs") as { uncompress: (bytes: Uint8Array) => Uint8Array }

/* Write-ahead logs, by doc/log_format.md of LevelDB. */

/** At the start of a batch: its sequence number (u64) and how many changes it has (u32). */
const BATCH_HEADER_BYTES = 12

interface LogFragment {
  readonly type: number
  readonly data: Buffer
}

/** The fragments of a log; undefined for each corrupted one. */
function* fragmentsOf(log: Buffer): Generator<LogFragment | undefined> {
  for (let at = 0; at < log.length;) {
    const left = Math.min(blockBytes - at % blockBytes, log.length - at)
    const end = left < recordHeaderBytes
      ? Infinity
      : recordHeaderBytes + log.readUInt16LE(at + 4)
    if (end > left) {
      // The rest of a block is padding, or its lengths cannot be trusted.
      if (left >= recordHeaderBytes) yield undefined
      at += left
      continue
    }
    yield maskedCrc32c(log.subarray(at + 6, at + end)) === log.readUInt32LE(at)
      ? { type: log.readUInt8(at + 6), data: log.subarray(at + recordHeaderBytes, at + end) }
      : undefined
    at += end
  }
}

/** The complete batches of a log; undefined for each corrupted fragment. */
function* batchesOf(log: Buffer): Generator<Buffer | undefined> {
  let parts: Array<Buffer> = []
  for (const fragment of fragmentsOf(log)) {
    if (fragment === undefined) {
      parts = []
      yield undefined
      continue
    }
    const { data, type } = fragment
    if (type === recordType.full) yield data
    else if (type === recordType.first) parts = [data]
    else if (parts.length > 0) parts.push(data)
    if (type === recordType.last && parts.length > 0) {
      yield Buffer.concat(parts)
      parts = []
    }
  }
}

/** A process that has the database open may have removed the log since it was listed. */
const readLog = (path: string): Buffer => unlessGone(() => readFileSync(path), Buffer.alloc(0))

/**
 * Describes the first batch that the logs in a folder lack before a later one; undefined when they
 * lack none. A crash leaves an incomplete batch at the end only: every batch before it was
 * flushed. Sequence numbers show a batch that is missing without a trace.
 */
export const logGap = (folder: string): string | undefined => {
  const logs = readdirSync(folder).filter((name) => name.endsWith(".log"))
  let next: bigint | undefined
  let corrupted: string | undefined
  for (const name of logs.sort((one, other) => parseInt(one, 10) - parseInt(other, 10))) {
    for (const batch of batchesOf(readLog(join(folder, name)))) {
      if (batch === undefined) {
        corrupted ??= name
        continue
      }
      if (corrupted !== undefined) {
        return `${corrupted} is corrupted before the end of what was written`
      }
      if (batch.length < BATCH_HEADER_BYTES) return `${name} holds a batch without a header`
      const sequence = batch.readBigUInt64LE(0)
      if (next !== undefined && sequence !== next) {
        return `${name} goes on with change ${sequence}, and ${next} is missing`
      }
      next = sequence + BigInt(batch.readUInt32LE(8))
    }
  }
  return undefined
}

/* Tables, by doc/table_format.md of LevelDB. */

const FOOTER_BYTES = 48

/** After each block: how it is compressed (u8), and the checksum (u32). */
const TRAILER_BYTES = 5

const MAGIC = 0xdb4775248b80fb57n

const SNAPPY = 1

/** The message says which part of a table is corrupted. */
class TableCorrupted extends Error {}

class TableReader {
  at = 0
  private readonly bytes: Buffer

  constructor(bytes: Buffer) {
    this.bytes = bytes
  }

  varint(): number {
    let value = 0
    for (let scale = 1;; scale *= 128) {
      const byte = this.bytes[this.at++]
      if (byte === undefined) throw new TableCorrupted("a number is cut")
      value += (byte & 0x7f) * scale
      if (byte < 0x80) return value
      if (scale > 2 ** 49) throw new TableCorrupted("a number is too large")
    }
  }

  take(bytes: number): Buffer {
    this.at += bytes
    return sliceOf(this.bytes, this.at - bytes, bytes)
  }
}

const sliceOf = (bytes: Buffer, at: number, length: number): Buffer => {
  if (at + length > bytes.length) throw new TableCorrupted("a block is cut")
  return bytes.subarray(at, at + length)
}

interface BlockHandle {
  readonly offset: number
  readonly size: number
}

const handleIn = (reader: TableReader): BlockHandle => ({
  offset: reader.varint(),
  size: reader.varint()
})

/** Reads a block and checks its checksum. */
const readBlock = (table: Buffer, { offset, size }: BlockHandle) => {
  const block = sliceOf(table, offset, size + TRAILER_BYTES)
  if (maskedCrc32c(block.subarray(0, size + 1)) !== block.readUInt32LE(size + 1)) {
    throw new TableCorrupted(`the checksum of the block at byte ${offset} differs`)
  }
  return { compression: block.readUInt8(size), bytes: block.subarray(0, size) }
}

const decompress = (bytes: Buffer): Buffer => {
  try {
    return Buffer.from(uncompress(bytes))
  } catch {
    throw new TableCorrupted("a block is not of Snappy")
  }
}

/** Checks all blocks that an index block names. */
const verifyIndexed = (table: Buffer, index: BlockHandle): void => {
  const { bytes, compression } = readBlock(table, index)
  const block = compression === SNAPPY ? decompress(bytes) : bytes
  const end = block.length - 4 - 4 * block.readUInt32LE(block.length - 4)
  for (const reader = new TableReader(block); reader.at < end;) {
    reader.varint() // bytes of the key that it shares with the one before
    const keyBytes = reader.varint()
    const valueBytes = reader.varint()
    reader.take(keyBytes)
    readBlock(table, handleIn(new TableReader(reader.take(valueBytes))))
  }
}

const verifyTable = (table: Buffer): void => {
  if (table.length < FOOTER_BYTES) throw new TableCorrupted("its end is missing")
  const footer = new TableReader(table.subarray(table.length - FOOTER_BYTES))
  verifyIndexed(table, handleIn(footer))
  verifyIndexed(table, handleIn(footer))
}

/** Whether a table lacks its last bytes. */
const isTruncated = (path: string): boolean => {
  let file: number
  try {
    file = openSync(path, "r")
  } catch {
    // A process that has the database open removed it; opening reports any other cause.
    return false
  }
  try {
    const bytes = Buffer.alloc(8)
    const read = readSync(file, bytes, 0, 8, Math.max(0, fstatSync(file).size - 8))
    return read < 8 || bytes.readBigUInt64LE(0) !== MAGIC
  } finally {
    closeSync(file)
  }
}

/** The paths of the tables in a folder. */
const tablesIn = (folder: string): ReadonlyArray<string> =>
  readdirSync(folder).filter((name) => /\.(ldb|sst)$/.test(name)).map((name) => join(folder, name))

/** Identifies one state of a file; undefined when there is no file. */
export const fileStateOf = (path: string): string | undefined => {
  const found = statSync(path, { throwIfNoEntry: false })
  return found && `${found.ino} ${found.size} ${found.mtimeMs}`
}

/** States of tables that were found intact, by path. LevelDB never changes a table. */
export type VerifiedTables = Map<string, string | undefined>

/** Describes what is wrong with a table; undefined when it is intact, or gone. */
const faultOf = async (
  path: string,
  verified: VerifiedTables
): Promise<string | undefined> => {
  const state = fileStateOf(path)
  if (state === undefined || verified.get(path) === state) return undefined
  try {
    verifyTable(await readFile(path))
    verified.set(path, state)
    return undefined
  } catch (error) {
    if (fileStateOf(path) !== state) return undefined
    if (error instanceof TableCorrupted) return `${path}: ${error.message}`
    // A RangeError comes of a wrong length in the table, anything else from the disk.
    if (!(error instanceof RangeError)) throw error
    return `${path}: its lengths are wrong`
  }
}

/**
 * Describes what is wrong with the first corrupted table; undefined when all are intact. Truncated
 * tables are left out: an interrupted compaction leaves them, and opening shows whether they
 * count. Skips tables in `verified`, and adds to it. Rejects when a table cannot be read.
 */
export const tableFault = async (
  folder: string,
  verified: VerifiedTables = new Map()
): Promise<string | undefined> => {
  const tables = tablesIn(folder)
  for (const path of verified.keys()) {
    if (dirname(path) === folder && !tables.includes(path)) verified.delete(path)
  }
  for (const path of tables) {
    const fault = isTruncated(path) ? undefined : await faultOf(path, verified)
    if (fault !== undefined) return fault
  }
  return undefined
}

/** Paths and states of truncated tables: parts of the database, or left by a crash. */
export const truncatedTables = (folder: string): ReadonlyMap<string, string | undefined> =>
  new Map(tablesIn(folder).filter(isTruncated).map((path) => [path, fileStateOf(path)]))
