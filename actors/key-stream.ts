/**
 * Encrypts many short texts cheaply: AES-256 in counter mode (NIST SP 800-38A), then HMAC-SHA-256
 * (RFC 2104, cut to 132 bits) over the encrypted text and its place. One call of the cipher makes a
 * page of the key stream, which encrypts hundreds of texts: a cipher object for each text would
 * cost as much as a sixth of a deposit. A page belongs to one random nonce, and each byte of it
 * encrypts one byte, once.
 *
 * An encrypted text is base64url: nonce (12 bytes), where the text begins in the page (4), the
 * encrypted bytes; and after it the code, 22 characters.
 */
import { createCipheriv, hash, randomBytes } from "node:crypto"
import { LRUCache } from "lru-cache"
import { streamPageBytes, streamPagesMax } from "./limits.ts"
import { sameHash } from "./secret-hash.ts"

const nonceBytes = 12

/** The block counter, which the cipher counts from 0 in each page. */
const counterBytes = 4

/** Nonce and offset. */
const headBytes = nonceBytes + 4

const codeChars = 22

const hashBlockBytes = 64

const hashBytes = 32

/** The greatest length of a character in UTF-8. */
const charBytesMax = 3

/** The key of HMAC, as it begins the input of its inner or outer hash. */
const paddedKey = (key: Uint8Array, pad: number): Buffer => {
  const block = Buffer.alloc(hashBlockBytes, pad)
  for (const [at, byte] of key.entries()) block.writeUInt8(byte ^ pad, at)
  return block
}

/** Encrypts and decrypts under one key of 32 bytes for each of the two algorithms. */
export class KeyStream {
  private readonly key: Uint8Array
  private readonly innerKey: Buffer
  /** The input of the outer hash. */
  private readonly outer = Buffer.alloc(hashBlockBytes + hashBytes)
  /** The input of the inner hash: its key, an encrypted text, its place, and the place's length. */
  private inner: Buffer
  /** The page that encrypts, and how much of it has been used. */
  private page: Buffer = Buffer.alloc(0)
  private used = 0
  private nonce: Buffer = Buffer.alloc(nonceBytes)
  /** The latest pages that decrypted, by nonce. */
  private readonly pages = new LRUCache<string, Buffer>({ max: streamPagesMax })

  constructor(cipherKey: Uint8Array, codeKey: Uint8Array) {
    this.key = cipherKey
    this.innerKey = paddedKey(codeKey, 0x36)
    this.inner = Buffer.from(this.innerKey)
    paddedKey(codeKey, 0x5c).copy(this.outer)
  }

  /** Encrypts a text for its place. */
  encrypt(text: string, storedAt: string): string {
    const start = hashBlockBytes + headBytes
    const inner = this.room(charBytesMax * text.length, storedAt)
    const end = start + inner.write(text, start, "utf8")
    if (this.used + end - start > this.page.length) this.turn(end - start)
    this.nonce.copy(inner, hashBlockBytes)
    inner.writeUInt32BE(this.used, hashBlockBytes + nonceBytes)
    this.apply(this.page, this.used, start, end)
    this.used += end - start
    return inner.toString("base64url", hashBlockBytes, end) + this.codeOf(end, storedAt)
  }

  /** The text; undefined if it was encrypted for another place, or changed. */
  decrypt(encrypted: string, storedAt: string): string | undefined {
    const inner = this.room(encrypted.length, storedAt)
    const encoded = encrypted.slice(0, -codeChars)
    const start = hashBlockBytes + headBytes
    const end = hashBlockBytes + inner.write(encoded, hashBlockBytes, "base64url")
    if (end < start) return undefined
    if (!sameHash(this.codeOf(end, storedAt), encrypted.slice(-codeChars))) return undefined
    // A text that was not encoded here may have other spellings of its last bits.
    if (inner.toString("base64url", hashBlockBytes, end) !== encoded) return undefined
    const offset = inner.readUInt32BE(hashBlockBytes + nonceBytes)
    this.apply(this.pageOf(offset + end - start), offset, start, end)
    return inner.toString("utf8", start, end)
  }

  /** The memory of the inner hash, with room for a text and its place. */
  private room(textBytes: number, storedAt: string): Buffer {
    const bytes = hashBlockBytes + headBytes + textBytes + charBytesMax * storedAt.length + 4
    if (bytes > this.inner.length) {
      this.inner = Buffer.alloc(2 * bytes)
      this.innerKey.copy(this.inner)
    }
    return this.inner
  }

  /** The code of the encrypted text before `end`, for its place. */
  private codeOf(end: number, storedAt: string): string {
    const { inner, outer } = this
    const length = inner.write(storedAt, end, "utf8")
    const last = inner.writeUInt32BE(length, end + length)
    // Node returns a hash as a text in half the time that it needs for bytes.
    outer.write(hash("sha256", inner.subarray(0, last), "binary"), hashBlockBytes, "latin1")
    return hash("sha256", outer, "base64url").slice(0, codeChars)
  }

  /** XORs a part of the memory with the key stream. */
  private apply(stream: Buffer, offset: number, from: number, to: number): void {
    const { inner } = this
    for (let at = from; at < to; at++) {
      inner[at] = (inner[at] ?? 0) ^ (stream[offset + at - from] ?? 0)
    }
  }

  /** Begins a page with a new nonce, with room for this many bytes. */
  private turn(bytes: number): void {
    this.nonce = randomBytes(nonceBytes)
    this.page = this.stream(this.nonce, Math.max(bytes, streamPageBytes))
    this.used = 0
  }

  /** The page of the nonce in the memory, up to this byte at least. */
  private pageOf(end: number): Buffer {
    const nonce = this.inner.subarray(hashBlockBytes, hashBlockBytes + nonceBytes)
    if (end > streamPageBytes) return this.stream(nonce, end)
    const name = nonce.toString("latin1")
    const known = this.pages.get(name)
    if (known !== undefined) return known
    const page = this.stream(nonce, streamPageBytes)
    this.pages.set(name, page)
    return page
  }

  private stream(nonce: Buffer, bytes: number): Buffer {
    const start = Buffer.concat([nonce, Buffer.alloc(counterBytes)])
    return createCipheriv("aes-256-ctr", this.key, start).update(Buffer.alloc(bytes))
  }
}
