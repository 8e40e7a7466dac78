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
import { createCipheriv, randomBytes } from "node:crypto"
import { LRUCache } from "lru-cache"
import { HmacSha256 } from "../runtime/index.ts"
import { streamPageBytes, streamPagesMax } from "./limits.ts"
import { sameHash } from "./secret-hash.ts"

const nonceBytes = 12

/** The block counter, which the cipher counts from 0 in each page. */
const counterBytes = 4

/** Nonce and offset. */
const headBytes = nonceBytes + 4

const codeChars = 22

/** The length of the place. */
const lengthBytes = 4

/** The greatest length of a character in UTF-8. */
const charBytesMax = 3

/** A cipher that encrypts zeros gives its key stream. */
const zeros = Buffer.alloc(streamPageBytes)

/** XORs the text in the memory, which ends at `end`, with the key stream from this offset on. */
const xor = (memory: Buffer, end: number, stream: Buffer, offset: number): void => {
  for (let at = headBytes; at < end; at++) {
    memory[at] = (memory[at] ?? 0) ^ (stream[offset + at - headBytes] ?? 0)
  }
}

/** Encrypts and decrypts under one key of 32 bytes for each of the two algorithms. */
export class KeyStream {
  private readonly key: Uint8Array
  /** Its input is an encrypted text, its place, and the place's length. */
  private readonly hmac: HmacSha256
  /** The page that encrypts, and how much of it has been used. */
  private page: Buffer = Buffer.alloc(0)
  private used = 0
  private nonce: Buffer = Buffer.alloc(nonceBytes)
  /** The latest pages that decrypted, by nonce. */
  private readonly pages = new LRUCache<string, Buffer>({ max: streamPagesMax })

  constructor(cipherKey: Uint8Array, codeKey: Uint8Array) {
    this.key = cipherKey
    this.hmac = new HmacSha256(codeKey)
  }

  /** Encrypts a text for its place. */
  encrypt(text: string, storedAt: string): string {
    const memory = this.room(charBytesMax * text.length, storedAt)
    const end = headBytes + memory.write(text, headBytes, "utf8")
    const bytes = end - headBytes
    if (this.used + bytes > this.page.length) this.turn(bytes)
    this.nonce.copy(memory)
    memory.writeUInt32BE(this.used, nonceBytes)
    xor(memory, end, this.page, this.used)
    this.used += bytes
    return memory.toString("base64url", 0, end) + this.codeOf(memory, end, storedAt)
  }

  /** The text; undefined if it was encrypted for another place, or changed. */
  decrypt(encrypted: string, storedAt: string): string | undefined {
    const memory = this.room(encrypted.length, storedAt)
    const encoded = encrypted.slice(0, -codeChars)
    const end = memory.write(encoded, 0, "base64url")
    if (end < headBytes) return undefined
    if (!sameHash(this.codeOf(memory, end, storedAt), encrypted.slice(-codeChars))) return undefined
    // A text that was not encoded here may have other spellings of its last bits.
    if (memory.toString("base64url", 0, end) !== encoded) return undefined
    const offset = memory.readUInt32BE(nonceBytes)
    const page = this.pageOf(memory.subarray(0, nonceBytes), offset + end - headBytes)
    xor(memory, end, page, offset)
    return memory.toString("utf8", headBytes, end)
  }

  /** Memory for a text and its place. */
  private room(textBytes: number, storedAt: string): Buffer {
    return this.hmac.input(headBytes + textBytes + charBytesMax * storedAt.length + lengthBytes)
  }

  /** The code of the encrypted text before `end`, for its place. */
  private codeOf(memory: Buffer, end: number, storedAt: string): string {
    const length = memory.write(storedAt, end, "utf8")
    return this.hmac.code(memory.writeUInt32BE(length, end + length)).slice(0, codeChars)
  }

  /** Begins a page with a new nonce, with room for this many bytes. */
  private turn(bytes: number): void {
    this.nonce = randomBytes(nonceBytes)
    this.page = this.stream(this.nonce, Math.max(bytes, streamPageBytes))
    this.used = 0
  }

  /** The page of the nonce, up to this byte at least. */
  private pageOf(nonce: Buffer, end: number): Buffer {
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
    const plain = bytes === zeros.length ? zeros : Buffer.alloc(bytes)
    return createCipheriv("aes-256-ctr", this.key, start).update(plain)
  }
}
