/** Credentials as a request carries them, and secrets as the service keeps them. */
export { BoundedMap } from "./bounded-map.ts"
export { CredentialCache } from "./credential-cache.ts"
export { type Identity, identityOf } from "./credentials.ts"
export { derivedIds, documentDigest, type IdSource, randomId, randomIds,
  secretHash } from "./secrets.ts"
