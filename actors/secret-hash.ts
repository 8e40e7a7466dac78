/**
 * Comparison of hashes of secrets. What is compared are SHA-256 hashes, of which whoever guesses
 * does not choose the guess's; that the time tells nothing either needs no argument then.
 */
import { timingSafeEqual } from "node:crypto"

/** Whether both are the same, in a time that depends on their lengths alone. */
export const sameHash = (one: string | undefined, other: string | undefined): boolean => {
  if (one === undefined || other === undefined || one.length !== other.length) return false
  return timingSafeEqual(Buffer.from(one, "latin1"), Buffer.from(other, "latin1"))
}
