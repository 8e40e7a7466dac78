/** The key stream that encrypts stored secrets, compared with Node's own cipher and code. */
import { createCipheriv, createHmac, randomBytes } from "node:crypto"
import { describe, expect, it } from "vitest"
import { KeyStream } from "../../actors/key-stream.ts"
import { streamPageBytes, streamPagesMax } from "../../actors/limits.ts"

const [cipherKey, codeKey] = [randomBytes(32), randomBytes(32)]
const place = "message password\nmailbox/alice"
const streamOf = (): KeyStream => new KeyStream(cipherKey, codeKey)

/** The parts of an encrypted text: nonce (12 bytes), offset (4), body; and the code. */
const partsOf = (encrypted: string) => {
  const bytes = Buffer.from(encrypted.slice(0, -22), "base64url")
  return {
    bytes,
    nonce: bytes.subarray(0, 12),
    offset: bytes.readUInt32BE(12),
    body: bytes.subarray(16),
    code: encrypted.slice(-22)
  }
}

describe("an encrypted text", () => {
  it("is what AES-256 in counter mode and HMAC-SHA-256 give", () => {
    const stream = streamOf()
    stream.encrypt("the first text of the page", place)
    const encrypted = stream.encrypt("open sesame ü", place)
    const { body, bytes, code, nonce, offset } = partsOf(encrypted)
    const counter = Buffer.concat([nonce, Buffer.alloc(4)])
    const cipher = createCipheriv("aes-256-ctr", cipherKey, counter)
    const plain = Buffer.concat([Buffer.alloc(offset), Buffer.from("open sesame ü")])
    expect(body).toEqual(cipher.update(plain).subarray(offset))
    const length = Buffer.alloc(4)
    length.writeUInt32BE(place.length)
    const mac = createHmac("sha256", codeKey).update(bytes).update(place).update(length)
    expect(code).toBe(mac.digest("base64url").slice(0, 22))
  })

  it.each([0, 1, 40, streamPageBytes - 1, streamPageBytes, streamPageBytes + 1, 100_000])(
    "of %i bytes opens in another process",
    (bytes) => {
      const text = "x".repeat(bytes)
      const stream = streamOf()
      stream.encrypt("before", place)
      expect(streamOf().decrypt(stream.encrypt(text, place), place)).toBe(text)
      expect(stream.decrypt(stream.encrypt("after", place), place)).toBe("after")
    }
  )

  it("opens for a place of any length and script only", () => {
    for (const at of ["", "ü".repeat(4_000), "mailbox/a"]) {
      const encrypted = streamOf().encrypt("text", at)
      expect(streamOf().decrypt(encrypted, at)).toBe("text")
      expect(streamOf().decrypt(encrypted, `${at}b`)).toBeUndefined()
    }
  })

  it("does not open with one character changed, or cut", () => {
    const encrypted = streamOf().encrypt("open sesame", place)
    for (let at = 0; at < encrypted.length; at++) {
      for (const other of ["A", "B", "_"].filter((one) => one !== encrypted[at])) {
        const changed = encrypted.slice(0, at) + other + encrypted.slice(at + 1)
        expect(streamOf().decrypt(changed, place), changed).toBeUndefined()
      }
      expect(streamOf().decrypt(encrypted.slice(0, at), place)).toBeUndefined()
    }
  })

  it("does not open under another key of either algorithm", () => {
    const encrypted = streamOf().encrypt("open sesame", place)
    const other = randomBytes(32)
    expect(new KeyStream(cipherKey, other).decrypt(encrypted, place)).toBeUndefined()
    expect(new KeyStream(other, codeKey).decrypt(encrypted, place)).not.toBe("open sesame")
  })
})

it("uses each byte of a page once, and pages of different nonces", () => {
  const stream = streamOf()
  const ends = new Map<string, number>()
  for (let n = 0; n < 4 * streamPagesMax; n++) {
    const { body, nonce, offset } = partsOf(stream.encrypt("a".repeat(n * 7), place))
    const page = nonce.toString("hex")
    expect(offset).toBeGreaterThanOrEqual(ends.get(page) ?? 0)
    ends.set(page, offset + body.length)
  }
  expect(ends.size).toBeGreaterThan(10)
})
