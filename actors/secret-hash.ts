/**
 * SHA-256, and the comparison of hashed secrets. Both sides of a comparison are hashes, so that no
 * client can choose the compared value. The comparison takes constant time.
 */
import { hash, timingSafeEqual } from "node:crypto"

/** SHA-256 as base64url without padding: 43 characters, see `SecretHash`. */
export const sha256 = (text: string): string => hash("sha256", text, "base64url")

/** Whether both are equal, in a time that depends on their lengths only. */
export const sameHash = (one: string | undefined, other: string | undefined): boolean => {
  if (one === undefined || other === undefined || one.length !== other.length) return false
  return timingSafeEqual(Buffer.from(one, "latin1"), Buffer.from(other, "latin1"))
}
