/** The credentials of requests, and the ids and secrets that the service creates. */
export { CredentialCache } from "./credential-cache.ts"
export { derivedIds, documentDigest, type Identity, identityOf, type IdSource, isRandomId, isSlug,
  makeToken, randomId, randomIds, secretHash } from "./credentials.ts"
export { areWithin, parseScopes, rightsIn, scopeWords } from "./token-scopes.ts"
