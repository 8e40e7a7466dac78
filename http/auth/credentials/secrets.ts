/**
 * Identifiers and secrets: 128 or more random bits in base64url. Only the SHA-256 of a secret is
 * ever stored, and hashes are compared in constant time (`actors/secret-hash.ts`).
 */
import { createHmac, hash, randomFillSync } from "node:crypto"

/** Bytes of an identifier (128 bits) and of a secret (256 bits). */
const idBytes = 16

const secretBytes = 32

/** Random bytes are drawn from the system in blocks: a call for each id would cost more. */
const pool = Buffer.alloc(4096)

let poolUsed = pool.length

const random = (bytes: number): string => {
  if (poolUsed + bytes > pool.length) {
    randomFillSync(pool)
    poolUsed = 0
  }
  const text = pool.toString("base64url", poolUsed, poolUsed + bytes)
  pool.fill(0, poolUsed, poolUsed + bytes)
  poolUsed += bytes
  return text
}

/** A new identifier: 128 random bits as 22 characters. */
export const randomId = (): string => random(idBytes)

/** SHA-256 of a secret in base64url without padding (43 characters), as it is stored. */
export const secretHash = (secret: string): string => hash("sha256", secret, "base64url")

/** 128 bits of the SHA-256 of a document's bytes, base64url: finds a repeated deposit. */
export const documentDigest = (bytes: Uint8Array): string =>
  hash("sha256", bytes, "base64url").slice(0, 22)

/**
 * Where the identifiers and secrets of one request come from. Those of a repeated request are
 * the same again, so that a repetition after a crash finds what the first attempt left.
 */
export interface IdSource {
  /** Whether they are drawn at random for this request, and so are nobody's yet. */
  readonly drawn: boolean
  /** 128 bits; each name gives another. */
  readonly id: (name: string) => string
  /** 256 bits. */
  readonly secret: (name: string) => string
}

export const randomIds: IdSource = {
  drawn: true,
  id: () => random(idBytes),
  secret: () => random(secretBytes)
}

/** Ids that follow from a key which only the repeating client and this service have together. */
export const derivedIds = (serviceKey: string, scope: string): IdSource => {
  const derive = (name: string) =>
    createHmac("sha256", serviceKey).update(`${scope}\n${name}`).digest()
  return {
    drawn: false,
    id: (name) => derive(name).toString("base64url", 0, idBytes),
    secret: (name) => derive(name).toString("base64url", 0, secretBytes)
  }
}
