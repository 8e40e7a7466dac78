/**
 * Random bytes from the seed, in place of those of `node:crypto`: identifiers, nonces and span ids
 * are then the same each time that a seed runs.
 */
import crypto from "node:crypto"
import { syncBuiltinESMExports } from "node:module"
import { randomOf } from "./random.ts"

/** Makes the bytes of the Web API independent of those of `node:crypto`. */
const webSeed = 0x3eb

/**
 * Replaces the random bytes; the result restores them. `drawId`: takes one id from a pool of random
 * bytes; it is called until the pool is filled again.
 */
export const installEntropy = (seed: number, drawId?: () => unknown): () => void => {
  const random = randomOf(seed)
  // Numbers of its own: modules draw some once in a process, which must not move the others.
  const webRandom = randomOf(seed ^ webSeed)
  const { randomBytes, randomFillSync, randomUUID } = crypto
  const count = { fills: 0 }
  const fill = (bytes: Uint8Array): Uint8Array => {
    count.fills++
    for (let at = 0; at < bytes.length; at++) bytes[at] = Math.floor(random() * 256)
    return bytes
  }
  Object.assign(crypto, {
    randomBytes: (size: number) => fill(Buffer.alloc(size)),
    randomFillSync: fill,
    randomUUID: () => globalThis.crypto.randomUUID()
  })
  const getRandomValues = <A extends NodeJS.TypedArray>(values: A): A => {
    const bytes = new Uint8Array(values.buffer, values.byteOffset, values.byteLength)
    for (let at = 0; at < bytes.length; at++) bytes[at] = Math.floor(webRandom() * 256)
    return values
  }
  // Shadows the method of the prototype.
  Object.defineProperty(globalThis.crypto, "getRandomValues", {
    configurable: true,
    value: getRandomValues
  })
  syncBuiltinESMExports()
  if (drawId !== undefined) { while (count.fills === 0) drawId() }
  return () => {
    Reflect.deleteProperty(globalThis.crypto, "getRandomValues")
    Object.assign(crypto, { randomBytes, randomFillSync, randomUUID })
    syncBuiltinESMExports()
  }
}
