/** Authentication, and protection against guessing and CSRF. */
export { browserIdentity, lookUpBrowser, refreshedCall } from "./browser-identity.ts"
export { isForbiddenOrigin, isForReader } from "./fetch-metadata.ts"
export { authenticate, authenticateCounted, type AuthenticatedAccount, callerOf, keyOwnerOf,
  optionalAccount, requireAccount, requireAdmin } from "./identity.ts"
export { checkPassword } from "./password-attempts.ts"
export { scopeFault } from "./scopes.ts"
export { checkBasicPassword, countWrongPassword, countWrongToken, endTokenAttempt, isBasicPassword,
  mayBeChosen } from "./throttle.ts"
