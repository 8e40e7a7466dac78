/**
 * Random bytes from the seed, in place of those of `node:crypto`: identifiers, nonces and span ids
 * are then the same each time that a seed runs.
 */
import crypto from "node:crypto"
import { syncBuiltinESMExports } from "node:module"
import { randomId } from "../../http/auth/credentials/index.ts"

/** Replaces the random bytes; the result restores them. */
export const installEntropy = (random: () => number): () => void => {
  const { randomBytes, randomFillSync } = crypto
  const count = { fills: 0 }
  const fill = (bytes: Uint8Array): Uint8Array => {
    count.fills++
    for (let at = 0; at < bytes.length; at++) bytes[at] = Math.floor(random() * 256)
    return bytes
  }
  Object.assign(crypto, {
    randomBytes: (size: number) => fill(Buffer.alloc(size)),
    randomFillSync: fill
  })
  syncBuiltinESMExports()
  // Identifiers come from a pool: uses up what the last run left there.
  while (count.fills === 0) randomId()
  return () => {
    Object.assign(crypto, { randomBytes, randomFillSync })
    syncBuiltinESMExports()
  }
}
