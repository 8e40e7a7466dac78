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
