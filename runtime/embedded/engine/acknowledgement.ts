/**
 * The file `acknowledged` beside the database: how many commits were told to be durable. It is
 * what makes a write-ahead log that was cut or corrupted noticed, since RocksDB recovers in
 * silence up to the first corrupted record. Two slots are written in turn, each 16 bytes: a mark,
 * the count (u64, big endian) and a CRC-32 of both, so that a torn slot leaves the other.
 */
import { closeSync, fsyncSync, openSync, readFileSync, writeSync } from "node:fs"
import { join } from "node:path"
import { crc32 } from "node:zlib"
import { flushFolder, unlessGone } from "../folders.ts"

export const ACKNOWLEDGEMENT_BYTES = 16

/** Where the slots begin: in sectors of their own. */
export const SLOTS = [0, 512] as const

const MARK = 0x5253544e

export const acknowledgedPath = (dataDir: string): string => join(dataDir, "acknowledged")

/** Writes one slot's bytes at the start of `bytes`. */
export const writeAcknowledgement = (bytes: Buffer, commits: number): void => {
  bytes.writeUInt32BE(MARK, 0)
  bytes.writeBigUInt64BE(BigInt(commits), 4)
  bytes.writeUInt32BE(crc32(Buffer.from(bytes.subarray(0, 12))), 12)
}

/**
 * The count of acknowledged commits; undefined when there is no file, null when there is one
 * that holds no whole slot.
 */
export const readAcknowledged = (dataDir: string): number | null | undefined => {
  const bytes = unlessGone(() => readFileSync(acknowledgedPath(dataDir)), undefined)
  if (bytes === undefined) return undefined
  let greatest: number | null = null
  for (const at of SLOTS) {
    if (bytes.length < at + ACKNOWLEDGEMENT_BYTES || bytes.readUInt32BE(at) !== MARK) continue
    if (bytes.readUInt32BE(at + 12) !== crc32(bytes.subarray(at, at + 12))) continue
    greatest = Math.max(greatest ?? 0, Number(bytes.readBigUInt64BE(at + 4)))
  }
  return greatest
}

/** Makes the file, for a new store. */
export const createAcknowledged = (dataDir: string): void => {
  const bytes = Buffer.alloc(SLOTS[1] + ACKNOWLEDGEMENT_BYTES)
  for (const at of SLOTS) writeAcknowledgement(bytes.subarray(at), 0)
  const file = openSync(acknowledgedPath(dataDir), "w")
  writeSync(file, bytes)
  fsyncSync(file)
  closeSync(file)
  flushFolder(dataDir)
}
