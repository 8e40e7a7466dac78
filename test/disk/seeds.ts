/** Reproducible random numbers. */
import { createHash } from "node:crypto"

/** From 0 up to 1. */
export const randomOf = (seed: string): () => number => {
  let count = 0
  return () => createHash("sha256").update(`${seed} ${count++}`).digest().readUInt32BE(0) / 2 ** 32
}
