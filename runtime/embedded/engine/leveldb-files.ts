/**
 * LevelDB's tables (doc/table_format.md of LevelDB). Each block has a checksum, which LevelDB looks
 * at only when it is told to, and the binding has no way to tell it.
 */
import { closeSync, fstatSync, openSync, readdirSync, readFileSync, readSync,
  statSync } from "node:fs"
import { readFile } from "node:fs/promises"
import { dirname, join } from "node:path"
import { unlessGone } from "../folders.ts"

/** CRC-32C (RFC 3720, appendix B.4), which Node's zlib lacks, as LevelDB keeps it in its files. */

const POLYNOMIAL = 0x82f63b78

const steps = Uint32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte
  for (let bit = 0; bit < 8; bit++) crc = (crc & 1) === 0 ? crc >>> 1 : (crc >>> 1) ^ POLYNOMIAL
  return crc
})

/** Four bytes at once: what each of them makes of the rest, one table after the other. */
const LANES = 4

const lanes = new Uint32Array(LANES * 256)

lanes.set(steps)

for (let at = 256; at < lanes.length; at++) {
  const before = lanes[at - 256] ?? 0
  lanes[at] = (steps[before & 0xff] ?? 0) ^ (before >>> 8)
}

export const crc32c = (bytes: Uint8Array): number => {
  let crc = 0xffffffff
  let at = 0
  for (const end = bytes.length - LANES; at <= end; at += LANES) {
    crc ^= (bytes[at] ?? 0) | ((bytes[at + 1] ?? 0) << 8) | ((bytes[at + 2] ?? 0) << 16) |
      ((bytes[at + 3] ?? 0) << 24)
    crc = (lanes[768 + (crc & 0xff)] ?? 0) ^ (lanes[512 + ((crc >>> 8) & 0xff)] ?? 0) ^
      (lanes[256 + ((crc >>> 16) & 0xff)] ?? 0) ^ (lanes[crc >>> 24] ?? 0)
  }
  for (; at < bytes.length; at++) {
    crc = (steps[(crc ^ (bytes[at] ?? 0)) & 0xff] ?? 0) ^ (crc >>> 8)
  }
  return ~crc >>> 0
}

/** As it stands in a file: turned, since a checksum of bytes that hold checksums tells little. */
export const masked = (crc: number): number =>
  ((((crc >>> 15) | (crc << 17)) >>> 0) + 0xa282ead8) >>> 0

const BLOCK_BYTES = 32 * 1024

const HEADER_BYTES = 7

const [FULL, FIRST, LAST] = [1, 2, 4]

/** At the start of a batch: its sequence number (u64) and how many changes it has (u32). */
const BATCH_HEADER_BYTES = 12

interface Fragment {
  readonly type: number
  readonly data: Buffer
}

/** The fragments of a log, undefined for each that is corrupted. */
function* fragmentsOf(log: Buffer): Generator<Fragment | undefined> {
  for (let at = 0; at < log.length;) {
    const left = Math.min(BLOCK_BYTES - at % BLOCK_BYTES, log.length - at)
    const end = left < HEADER_BYTES ? Infinity : HEADER_BYTES + log.readUInt16LE(at + 4)
    if (end > left) {
      // The rest of a block is padding, or its lengths cannot be trusted.
      if (left >= HEADER_BYTES) yield undefined
      at += left
      continue
    }
    const isWhole = masked(crc32c(log.subarray(at + 6, at + end))) === log.readUInt32LE(at)
    yield isWhole
      ? { type: log.readUInt8(at + 6), data: log.subarray(at + HEADER_BYTES, at + end) }
      : undefined
    at += end
  }
}

/** The batches of a log that are whole, and undefined for what is corrupted. */
function* batchesOf(log: Buffer): Generator<Buffer | undefined> {
  let parts: Array<Buffer> = []
  for (const fragment of fragmentsOf(log)) {
    if (fragment === undefined) {
      parts = []
      yield undefined
      continue
    }
    const { data, type } = fragment
    if (type === FULL) yield data
    else if (type === FIRST) parts = [data]
    else if (parts.length > 0) parts.push(data)
    if (type === LAST && parts.length > 0) {
      yield Buffer.concat(parts)
      parts = []
    }
  }
}

/** Whoever has the database open may have put it away. */
const readLog = (path: string): Buffer => unlessGone(() => readFileSync(path), Buffer.alloc(0))

/** Where the logs in a folder lack a batch that is followed by another; undefined when nowhere. */
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

/*
 * LevelDB's write-ahead logs (doc/log_format.md of LevelDB). LevelDB leaves out what is corrupted in
 * them and goes on with the next block, in silence. What was being written when a process or the
 * power was lost is at the end; whatever a batch follows was durable. Every batch has a sequence
 * number too, so that one that is missing without a trace shows.
 */

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
