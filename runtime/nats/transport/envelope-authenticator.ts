/**
 * The signature of envelopes. Whoever may publish on NATS but does not have a key of the cluster
 * can neither make a node act nor answer for one.
 */
import { createHmac, createSecretKey, type KeyObject, timingSafeEqual } from "node:crypto"

export interface EnvelopeAuthenticator {
  /** The code of an envelope under the current key: 22 characters of base64url. */
  readonly sign: (head: string, body: Uint8Array) => string
  /** Whether a code is that of the envelope under any of the keys. */
  readonly isSigned: (head: string, body: Uint8Array, code: string) => boolean
}

/** Half of SHA-256: nobody can try 2^128 codes at a running node. */
const codeBytes = 16

const codeOf = (key: KeyObject, head: string, body: Uint8Array): string =>
  createHmac("sha256", key).update(head).update(body).digest()
    .toString("base64url", 0, codeBytes)

/**
 * HMAC-SHA-256 (RFC 2104) of head and body, of which the first 128 bits count. The first key signs;
 * all are accepted, so that nodes can change their keys one after the other. Throws a RangeError
 * for no key.
 */
export const hmacAuthenticator = (keys: ReadonlyArray<Uint8Array>): EnvelopeAuthenticator => {
  const all = keys.map((key) => createSecretKey(key))
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
