/** CRC-32C (RFC 3720, appendix B.4), which Node's zlib lacks, as LevelDB keeps it in its files. */

const POLYNOMIAL = 0x82f63b78

const steps = Uint32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte
  for (let bit = 0; bit < 8; bit++) crc = (crc & 1) === 0 ? crc >>> 1 : (crc >>> 1) ^ POLYNOMIAL
  return crc
})

export const crc32c = (bytes: Uint8Array): number => {
  let crc = 0xffffffff
  for (let at = 0; at < bytes.length; at++) {
    crc = (steps[(crc ^ (bytes[at] ?? 0)) & 0xff] ?? 0) ^ (crc >>> 8)
  }
  return ~crc >>> 0
}

/** As it stands in a file: turned, since a checksum of bytes that hold checksums tells little. */
export const masked = (crc: number): number =>
  ((((crc >>> 15) | (crc << 17)) >>> 0) + 0xa282ead8) >>> 0
