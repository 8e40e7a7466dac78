/**
 * The file `acknowledged` beside the database: how many commits were acknowledged as durable.
 * RocksDB recovers its log up to the first corrupted record and reports nothing; the count shows
 * that commits are missing. Two slots are written in turn, so that a torn write leaves the other.
 * A slot has 16 bytes: a magic number, the count (u64, big endian) and a CRC-32 of both.
 */
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { crc32 } from "node:zlib"
import { flushFolder, unlessGone } from "../folders.ts"

export const ACKNOWLEDGEMENT_BYTES = 16

/** Offsets of the slots: each is in its own sector. */
export const SLOTS = [0, 512] as const

const MAGIC = 0x5253544e

export const acknowledgedPath = (dataDir: string): string => join(dataDir, "acknowledged")

/** Encodes one slot at the start of `bytes`. */
export const writeAcknowledgement = (bytes: Buffer, commits: number): void => {
  bytes.writeUInt32BE(MAGIC, 0)
  bytes.writeBigUInt64BE(BigInt(commits), 4)
  bytes.writeUInt32BE(crc32(Buffer.from(bytes.subarray(0, 12))), 12)
}

/** The count of acknowledged commits; undefined without a file, null without an intact slot. */
export const readAcknowledged = (dataDir: string): number | null | undefined => {
  const bytes = unlessGone(() => readFileSync(acknowledgedPath(dataDir)), undefined)
  if (bytes === undefined) return undefined
  let greatest: number | null = null
  for (const at of SLOTS) {
    if (bytes.length < at + ACKNOWLEDGEMENT_BYTES || bytes.readUInt32BE(at) !== MAGIC) continue
    if (bytes.readUInt32BE(at + 12) !== crc32(bytes.subarray(at, at + 12))) continue
    greatest = Math.max(greatest ?? 0, Number(bytes.readBigUInt64BE(at + 4)))
  }
  return greatest
}

/** Creates the file, for a new store. */
export const createAcknowledged = (dataDir: string): void => {
  const bytes = Buffer.alloc(SLOTS[1] + ACKNOWLEDGEMENT_BYTES)
  for (const at of SLOTS) writeAcknowledgement(bytes.subarray(at), 0)
  writeFileSync(acknowledgedPath(dataDir), bytes, { flush: true })
  flushFolder(dataDir)
}
