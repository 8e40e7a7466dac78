/**
 * What the write-ahead logs of LevelDB (doc/log_format.md) and RocksDB (db/log_format.h) have in
 * common: records with a header, in blocks of 32 KiB, and a masked CRC-32C over type and data.
 */
import { createRequire } from "node:module"

const require = createRequire(import.meta.url)

// The package has types for its main entry alone; both entries export the same functions.
const { buf } = require("crc-32/crc32c.js") as typeof import("crc-32")

export const blockBytes = 32 * 1024

/** Checksum (u32), length (u16) and type (u8), before the data of a record. */
export const recordHeaderBytes = 7

/** The record types that both databases write. A middle fragment has type 3. */
export const recordType = { full: 1, first: 2, last: 4 } as const

/** CRC-32C (RFC 3720, appendix B.4), which Node's zlib lacks. */
export const crc32c = (bytes: Uint8Array): number => buf(bytes) >>> 0

/** As files hold it: rotated and offset, so that checksums of checksums stay useful. */
export const maskedCrc32c = (bytes: Uint8Array): number => {
  const crc = crc32c(bytes)
  return ((((crc >>> 15) | (crc << 17)) >>> 0) + 0xa282ead8) >>> 0
}
