/**
 * Encrypts many short texts cheaply: AES-256 in counter mode (NIST SP 800-38A), then HMAC-SHA-256
 * (RFC 2104, cut to 128 bits) over the encrypted text and its place. One call of the cipher makes a
 * page of the key stream, which encrypts hundreds of texts: a cipher for each text would cost as
 * much as a sixth of a deposit. A page belongs to one random nonce, and each byte of it encrypts
 * one byte, once. An encrypted text has the nonce, where it begins in the page, the code and the
 * encrypted bytes.
 */
import { createCipheriv, hash, randomBytes, timingSafeEqual } from "node:crypto"
import { LRUCache } from "lru-cache"
import { streamPageBytes, streamPagesMax } from "./limits.ts"

const nonceBytes = 12

/** The block counter, which the cipher counts from 0 in each page. */
const counterBytes = 4

/** Nonce and offset. */
const placeBytes = nonceBytes + 4

const codeBytes = 16

const headBytes = placeBytes + codeBytes

const hashBlockBytes = 64

const hashBytes = 32

/** HMAC-SHA-256 by two hashes of prepared memory: it costs half as much as an `Hmac` object. */
class MessageCode {
  private inner = Buffer.alloc(1024)
  private readonly outer = Buffer.alloc(hashBlockBytes + hashBytes)
  private readonly innerKey: Buffer

  constructor(key: Uint8Array) {
    this.innerKey = Buffer.alloc(hashBlockBytes, 0x36)
    this.outer.fill(0x5c, 0, hashBlockBytes)
    for (const [at, byte] of key.entries()) {
      this.innerKey.writeUInt8(byte ^ 0x36, at)
      this.outer.writeUInt8(byte ^ 0x5c, at)
    }
    this.innerKey.copy(this.inner)
  }

  /** The code of an encrypted text: of its nonce and offset, its bytes, and where it is stored. */
  of(encrypted: Buffer, storedAt: string): Buffer {
    const bodyBytes = encrypted.length - headBytes
    const most = hashBlockBytes + placeBytes + 4 + bodyBytes + 3 * storedAt.length
    if (most > this.inner.length) {
      this.inner = Buffer.alloc(2 * most)
      this.innerKey.copy(this.inner)
    }
    const { inner } = this
    let at = hashBlockBytes
    at += encrypted.copy(inner, at, 0, placeBytes)
    at = inner.writeUInt32BE(bodyBytes, at)
    at += encrypted.copy(inner, at, headBytes)
    at += inner.write(storedAt, at, "utf8")
    hash("sha256", inner.subarray(0, at), "buffer").copy(this.outer, hashBlockBytes)
    return hash("sha256", this.outer, "buffer")
  }
}

/** XORs `bytes` with the key stream. */
const apply = (bytes: Buffer, from: number, stream: Buffer, offset: number): void => {
  for (let at = from; at < bytes.length; at++) {
    bytes[at] = (bytes[at] ?? 0) ^ (stream[offset + at - from] ?? 0)
  }
}

/** Encrypts and decrypts under one key of 32 bytes for each of the two algorithms. */
export class KeyStream {
  private readonly key: Uint8Array
  private readonly code: MessageCode
  /** The page that encrypts, and how much of it has been used. */
  private page: Buffer = Buffer.alloc(0)
  private used = 0
  private nonce: Buffer = Buffer.alloc(nonceBytes)
  /** The latest pages that decrypted, by nonce. */
  private readonly pages = new LRUCache<string, Buffer>({ max: streamPagesMax })

  constructor(cipherKey: Uint8Array, codeKey: Uint8Array) {
    this.key = cipherKey
    this.code = new MessageCode(codeKey)
  }

  /** Encrypts a text for its place. */
  encrypt(text: string, storedAt: string): Buffer {
    const bodyBytes = Buffer.byteLength(text)
    if (this.used + bodyBytes > this.page.length) this.turn(bodyBytes)
    const encrypted = Buffer.allocUnsafe(headBytes + bodyBytes)
    this.nonce.copy(encrypted)
    encrypted.writeUInt32BE(this.used, nonceBytes)
    encrypted.write(text, headBytes, "utf8")
    apply(encrypted, headBytes, this.page, this.used)
    this.used += bodyBytes
    this.code.of(encrypted, storedAt).copy(encrypted, placeBytes, 0, codeBytes)
    return encrypted
  }

  /** The text; undefined if it was encrypted for another place, or changed. */
  decrypt(encrypted: Buffer, storedAt: string): string | undefined {
    if (encrypted.length < headBytes) return undefined
    const code = this.code.of(encrypted, storedAt).subarray(0, codeBytes)
    if (!timingSafeEqual(code, encrypted.subarray(placeBytes, headBytes))) return undefined
    const offset = encrypted.readUInt32BE(nonceBytes)
    const end = offset + encrypted.length - headBytes
    const text = Buffer.from(encrypted.subarray(headBytes))
    apply(text, 0, this.pageOf(encrypted, end), offset)
    return text.toString("utf8")
  }

  /** Begins a page with a new nonce, with room for this many bytes. */
  private turn(bytes: number): void {
    this.nonce = randomBytes(nonceBytes)
    this.page = this.stream(this.nonce, Math.max(bytes, streamPageBytes))
    this.used = 0
  }

  private pageOf(encrypted: Buffer, end: number): Buffer {
    if (end > streamPageBytes) return this.stream(encrypted.subarray(0, nonceBytes), end)
    const name = encrypted.toString("latin1", 0, nonceBytes)
    const known = this.pages.get(name)
    if (known !== undefined) return known
    const page = this.stream(encrypted.subarray(0, nonceBytes), streamPageBytes)
    this.pages.set(name, page)
    return page
  }

  private stream(nonce: Buffer, bytes: number): Buffer {
    const start = Buffer.concat([nonce, Buffer.alloc(counterBytes)])
    return createCipheriv("aes-256-ctr", this.key, start).update(Buffer.alloc(bytes))
  }
}
