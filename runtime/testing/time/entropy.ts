/**
 * Random bytes from the seed, in place of those of `node:crypto`: identifiers, nonces and span ids
 * are then the same each time that a seed runs.
 */
import crypto from "node:crypto"
import { syncBuiltinESMExports } from "node:module"
import type { Random } from "./random.ts"

/**
 * Replaces the random bytes; the result restores them. `drawId`: takes one id from a pool of random
 * bytes; it is called until the pool is filled again.
 */
export const installEntropy = (random: Random, drawId?: () => unknown): () => void => {
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
  if (drawId !== undefined) { while (count.fills === 0) drawId() }
  return () => {
    Object.assign(crypto, { randomBytes, randomFillSync })
    syncBuiltinESMExports()
  }
}
