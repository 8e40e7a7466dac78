/**
 * Hashes of secrets. Both sides of a comparison are SHA-256 hashes, so that nobody can choose
 * the compared value; and the comparison takes constant time.
 */
import { hash, timingSafeEqual } from "node:crypto"

/** SHA-256 as base64url without padding: 43 characters, see `SecretHash`. */
export const sha256 = (text: string): string => hash("sha256", text, "base64url")

/** Whether both are equal, in a time that depends on their lengths only. */
export const sameHash = (one: string | undefined, other: string | undefined): boolean => {
  if (one === undefined || other === undefined || one.length !== other.length) return false
  return timingSafeEqual(Buffer.from(one, "latin1"), Buffer.from(other, "latin1"))
}
