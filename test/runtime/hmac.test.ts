/** HMAC by one-shot hashes, compared with Node's. */
import { createHmac } from "node:crypto"
import { expect, it } from "vitest"
import { HmacSha256 } from "../../runtime/index.ts"

const bytes = (count: number, first: number): Buffer =>
  Buffer.from(Array.from({ length: count }, (_, at) => first + at))

it("is that of RFC 2104, whatever was hashed before", () => {
  // Around a block of the hash, and above what is kept in memory.
  const lengths = [0, 1, 55, 56, 63, 64, 65, 1_000, 65_536, 65_537, 70_000, 200_000, 3, 65_536, 2]
  for (const keyLength of [0, 1, 32, 63, 64]) {
    const key = bytes(keyLength, 200)
    const hmac = new HmacSha256(key)
    for (const [at, length] of lengths.entries()) {
      const input = bytes(length, at)
      hmac.input(length).set(input)
      expect(hmac.code(length)).toBe(createHmac("sha256", key).update(input).digest("base64url"))
    }
  }
})

it("takes no key that it would have to hash first", () => {
  expect(() => new HmacSha256(bytes(65, 0))).toThrow(RangeError)
})
