/**
 * LevelDB's tables (doc/table_format.md of LevelDB). Each block has a checksum, which LevelDB looks
 * at only when it is told to, and the binding has no way to tell it.
 */
import { closeSync, fstatSync, openSync, readdirSync, readSync, statSync } from "node:fs"
import { readFile } from "node:fs/promises"
import { dirname, join } from "node:path"
import { crc32c, masked } from "./crc32c.ts"

const FOOTER_BYTES = 48
/** After each block: how it is compressed (u8), and the checksum (u32). */
const TRAILER_BYTES = 5
const MAGIC = 0xdb4775248b80fb57n
const SNAPPY = 1

/** Something that cannot be read: what it is. */
class Unreadable extends Error {}

class Reader {
  at: number
  readonly bytes: Buffer

  constructor(bytes: Buffer, at = 0) {
    this.bytes = bytes
    this.at = at
  }

  byte(): number {
    const byte = this.bytes[this.at++]
    if (byte === undefined) throw new Unreadable("a number is cut")
    return byte
  }

  varint(): number {
    let value = 0
    for (let scale = 1;; scale *= 128) {
      const byte = this.byte()
      value += (byte & 0x7f) * scale
      if (byte < 0x80) return value
      if (scale > 2 ** 49) throw new Unreadable("a number is too large")
    }
  }

  skip(bytes: number): Buffer {
    if (this.at + bytes > this.bytes.length) throw new Unreadable("a block is cut")
    this.at += bytes
    return this.bytes.subarray(this.at - bytes, this.at)
  }
}

/** Undoes Snappy (format_description.txt of Snappy), for the index of a table. */
const decompressed = (bytes: Buffer): Buffer => {
  const from = new Reader(bytes)
  const to = Buffer.alloc(from.varint())
  let length = 0
  while (from.at < bytes.length) {
    const tag = from.byte()
    const kind = tag & 3
    if (kind === 0) {
      const extra = Math.max(0, (tag >>> 2) - 59)
      const size = extra === 0 ? tag >>> 2 : from.skip(extra).readUIntLE(0, extra)
      length += from.skip(size + 1).copy(to, length)
      continue
    }
    const size = kind === 1 ? ((tag >>> 2) & 7) + 4 : (tag >>> 2) + 1
    const back = kind === 1
      ? (tag >>> 5) * 256 + from.byte()
      : from.skip(kind === 2 ? 2 : 4).readUIntLE(0, kind === 2 ? 2 : 4)
    if (back === 0 || back > length) throw new Unreadable("a block is not of Snappy")
    const end = length + size
    for (; length < end; length++) to[length] = to[length - back] ?? 0
  }
  return to
}

interface Handle {
  readonly offset: number
  readonly size: number
}

const handleOf = (reader: Reader): Handle => ({ offset: reader.varint(), size: reader.varint() })

/** A block whose checksum is right. */
const blockOf = (table: Buffer, { offset, size }: Handle): { kind: number; bytes: Buffer } => {
  const reader = new Reader(table, offset)
  const whole = reader.skip(size + TRAILER_BYTES)
  if (masked(crc32c(whole.subarray(0, size + 1))) !== whole.readUInt32LE(size + 1)) {
    throw new Unreadable(`the checksum of the block at byte ${offset} differs`)
  }
  return { kind: whole.readUInt8(size), bytes: whole.subarray(0, size) }
}

/** The places of blocks that an index names. */
function* handlesIn({ bytes, kind }: ReturnType<typeof blockOf>): Generator<Handle> {
  const block = kind === SNAPPY ? decompressed(bytes) : bytes
  const end = block.length - 4 - 4 * block.readUInt32LE(block.length - 4)
  for (const reader = new Reader(block); reader.at < end;) {
    reader.varint() // bytes of the key that it shares with the one before
    const keyBytes = reader.varint()
    const valueBytes = reader.varint()
    reader.skip(keyBytes)
    yield handleOf(new Reader(reader.skip(valueBytes)))
  }
}

/** Whether these last bytes of a file end a table. */
const isClosed = (bytes: Buffer): boolean =>
  bytes.length >= 8 && bytes.readBigUInt64LE(bytes.length - 8) === MAGIC

const isCut = (path: string): boolean => {
  let file: number
  try {
    file = openSync(path, "r")
  } catch {
    // Gone, by whoever has the database open; what else it may be, opening will tell.
    return false
  }
  try {
    const bytes = Buffer.alloc(8)
    const read = readSync(file, bytes, 0, 8, Math.max(0, fstatSync(file).size - 8))
    return !isClosed(bytes.subarray(0, read))
  } finally {
    closeSync(file)
  }
}

const verify = (table: Buffer): void => {
  if (table.length < FOOTER_BYTES) throw new Unreadable("its end is missing")
  const footer = new Reader(table.subarray(table.length - FOOTER_BYTES))
  const meta = handleOf(footer)
  const index = handleOf(footer)
  for (const handle of handlesIn(blockOf(table, meta))) blockOf(table, handle)
  for (const handle of handlesIn(blockOf(table, index))) blockOf(table, handle)
}

/** The tables in a folder, with their paths. */
const tablesIn = (folder: string): ReadonlyArray<string> =>
  readdirSync(folder).filter((name) => /\.(ldb|sst)$/.test(name)).map((name) => join(folder, name))

/** What tells one state of a file from another. */
export const stampOf = (path: string): string | undefined => {
  const found = statSync(path, { throwIfNoEntry: false })
  return found && `${found.ino} ${found.size} ${found.mtimeMs}`
}

/** Stamps of tables by path that this process has found sound: none is ever changed. */
const sound = new Map<string, string | undefined>()

/** What is wrong with a table; undefined when it is sound, or gone. */
const faultOf = async (path: string): Promise<string | undefined> => {
  const stamp = stampOf(path)
  if (stamp === undefined || sound.get(path) === stamp) return undefined
  try {
    verify(await readFile(path))
    sound.set(path, stamp)
    return undefined
  } catch (error) {
    if (stampOf(path) !== stamp) return undefined
    if (error instanceof Unreadable) return `${path}: ${error.message}`
    // Anything else is the disk's trouble, not the table's.
    if (!(error instanceof RangeError)) throw error
    return `${path}: its lengths are wrong`
  }
}

/**
 * What is wrong with the first table that is; undefined when all are sound. LevelDB may end the
 * process at what it reads of one that is not. Those without an end are of an interrupted
 * compaction: whether they count, opening tells. Rejects when one cannot be read.
 */
export const tableFault = async (folder: string): Promise<string | undefined> => {
  const tables = tablesIn(folder)
  for (const path of sound.keys()) {
    if (dirname(path) === folder && !tables.includes(path)) sound.delete(path)
  }
  for (const path of tables) {
    const fault = isCut(path) ? undefined : await faultOf(path)
    if (fault !== undefined) return fault
  }
  return undefined
}

/** Tables that were cut: of the database, or left half-written by a crash; with their stamps. */
export const cutTables = (folder: string): ReadonlyMap<string, string | undefined> =>
  new Map(
    tablesIn(folder).filter(isCut).map((path) => [path, stampOf(path)])
  )
