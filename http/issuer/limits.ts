/** Every bound of tokens of the outside issuer. */

/** A key set, in bytes, and its keys. */
export const keySetBytesMax = 256 * 1024
export const keysMax = 100
/** What an issuer tells of itself, in characters. */
export const metadataCharsMax = 256 * 1024
/** Keys are looked for again when they are so old. */
export const keysFreshMs = 10 * 60_000
/** While that fails they are used until they are so old; then no token can be checked. */
export const keysStaleMs = 60 * 60_000
/** Time between two looks for keys, whatever the tokens ask for. */
export const keysPauseMs = 10_000
/** Tokens that were checked and are remembered until they expire. */
export const verifiedTokensMax = 10_000
/** Length of the name of a claim, and the dots in it. */
export const claimPathCharsMax = 200
export const claimPathDotsMax = 8
/** Roles of one token that are looked at. */
export const claimedRolesMax = 1_000
/** How far the issuer's clock may be off, at the most. */
export const clockToleranceMaxMs = 5 * 60_000

const issuerRelationsHold = (relation: boolean, name: string): void => {
  if (!relation) throw new Error(`http/issuer/limits.ts: ${name} does not hold`)
}
issuerRelationsHold(
  keysPauseMs < keysFreshMs,
  "keys are looked for more than once while they are fresh"
)
issuerRelationsHold(keysFreshMs < keysStaleMs, "keys are looked for again before they are given up")
