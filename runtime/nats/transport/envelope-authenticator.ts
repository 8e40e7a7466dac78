/**
 * The signature of envelopes. Whoever may publish on NATS but does not have a key of the cluster
 * can neither make a node act nor answer for one.
 */
import { timingSafeEqual } from "node:crypto"
import { HmacSha256 } from "../../hmac.ts"

/** Signs the messages between nodes by the keys of their cluster, and checks them. */
export interface EnvelopeAuthenticator {
  /** The code of an envelope under the current key: 22 characters of base64url. */
  readonly sign: (head: string, body: Uint8Array) => string
  /** Whether a code is that of the envelope under any of the keys. */
  readonly isSigned: (head: string, body: Uint8Array, code: string) => boolean
}

/** The greatest length of a character in UTF-8. */
const charBytesMax = 3

/** Characters of base64url that hold only bits of the 16 bytes. */
const wholeChars = 21

const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

/** The two bits of the next character that belong to the 16 bytes. */
const lastBits = 0b110000

/**
 * The first 16 bytes of a hash as base64url: half of SHA-256, since nobody can try 2^128 codes at a
 * running node.
 */
const halfOf = (code: string): string =>
  code.slice(0, wholeChars) + digits.charAt(digits.indexOf(code.charAt(wholeChars)) & lastBits)

const codeOf = (hmac: HmacSha256, head: string, body: Uint8Array): string => {
  const memory = hmac.input(charBytesMax * head.length + body.length)
  const at = memory.write(head, "utf8")
  memory.set(body, at)
  return halfOf(hmac.code(at + body.length))
}

/**
 * HMAC-SHA-256 (RFC 2104) of head and body, of which the first 128 bits count. The first key signs;
 * all are accepted, so that nodes can change their keys one after the other. Throws a RangeError
 * for no key.
 */
export const hmacAuthenticator = (keys: ReadonlyArray<Uint8Array>): EnvelopeAuthenticator => {
  const all = keys.map((key) => new HmacSha256(key))
  const [current] = all
  if (current === undefined) throw new RangeError("there is no key for envelopes")
  return {
    sign: (head, body) => codeOf(current, head, body),
    isSigned: (head, body, code) => {
      // Compared as text: another spelling of the same bits is another code.
      const given = Buffer.from(code, "latin1")
      return all.some((key) => {
        const expected = Buffer.from(codeOf(key, head, body), "latin1")
        return given.length === expected.length && timingSafeEqual(given, expected)
      })
    }
  }
}
