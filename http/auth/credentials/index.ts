/** The credentials of requests, and the ids and secrets that the service creates. */
export { CredentialCache } from "./credential-cache.ts"
export { type Identity, identityOf } from "./credentials.ts"
export { derivedIds, documentDigest, type IdSource, randomId, randomIds,
  secretHash } from "./secrets.ts"
