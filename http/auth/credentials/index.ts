/** The credentials of requests, and the ids and secrets that the service creates. */
export { CredentialCache } from "./credential-cache.ts"
export { derivedIds, documentDigest, type Identity, identityOf, type IdSource, isRandomId, isSlug,
  makeToken, operatorAccount, randomId, randomIds, secretHash, type SignedIn,
  tokenPrefix } from "./credentials.ts"
export { type SessionCookie, sessionCookieIn, sessionCookieOf, setSessionCookie,
  unsetSessionCookie } from "./session-cookie.ts"
export { areWithin, parseScopes, rightsIn, scopeWords } from "./token-scopes.ts"
