/**
 * Verifies the files of a LevelDB folder before LevelDB opens it. LevelDB skips corrupted log
 * records without an error. It verifies no table, and may end the process when it reads a corrupted
 * one. The binding has no option for `paranoid_checks`, and its `repair` drops unreadable data.
 */
import { closeSync, fstatSync, openSync, readdirSync, readFileSync, readSync,
  statSync } from "node:fs"
import { readFile } from "node:fs/promises"
import { createRequire } from "node:module"
import { dirname, join } from "node:path"
import { unlessGone } from "../folders.ts"
import { blockBytes, maskedCrc32c, recordHeaderBytes, recordType } from "./log-format.ts"

const require = createRequire(import.meta.url)

// The package has no types. This file uses one function of it.
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
      // The rest of the block is padding, or the record's length is wrong.
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
 * Describes the first missing batch before a later one in the logs of a folder; undefined: none is
 * missing. A crash leaves an incomplete batch only at the end, because every earlier batch was
 * flushed. If the bytes of a batch are gone, the sequence numbers show that it is missing.
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
        return `${corrupted} is corrupted, and later batches follow`
      }
      if (batch.length < BATCH_HEADER_BYTES) return `${name} has a batch without a header`
      const sequence = batch.readBigUInt64LE(0)
      if (next !== undefined && sequence !== next) {
        return `${name} continues with change ${sequence}, and ${next} is missing`
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
      if (byte === undefined) throw new TableCorrupted("a number is truncated")
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
  if (at + length > bytes.length) throw new TableCorrupted("a block is truncated")
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
    throw new TableCorrupted("a block is not compressed with Snappy")
  }
}

/** Checks all blocks that an index block names. */
const verifyIndexed = (table: Buffer, index: BlockHandle): void => {
  const { bytes, compression } = readBlock(table, index)
  const block = compression === SNAPPY ? decompress(bytes) : bytes
  const end = block.length - 4 - 4 * block.readUInt32LE(block.length - 4)
  for (const reader = new TableReader(block); reader.at < end;) {
    reader.varint() // how many bytes the key shares with the previous key
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
    // A wrong length in the table causes a RangeError, the disk any other error.
    if (!(error instanceof RangeError)) throw error
    return `${path}: its lengths are wrong`
  }
}

/**
 * Describes what is wrong with the first corrupted table; undefined when all are intact. It ignores
 * truncated tables: an interrupted compaction leaves some, and LevelDB removes these when it opens.
 * Skips tables in `verified`, and adds to it. Rejects when a table cannot be read.
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

/** Paths and states of all truncated tables, also of those that LevelDB removes when it opens. */
export const truncatedTables = (folder: string): ReadonlyMap<string, string | undefined> =>
  new Map(tablesIn(folder).filter(isTruncated).map((path) => [path, fileStateOf(path)]))
