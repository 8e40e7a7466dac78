/** Who calls: accounts, passwords, and protection against guessing and CSRF. */
export { isCrossSiteRequest } from "./csrf.ts"
export { authenticate, authenticateCounted, type AuthenticatedAccount, callerOf,
  countingWrongCredentials, hasIssuerToken, optionalAccount, requireAccount,
  requireAdmin } from "./identity.ts"
export { checkPasswordThrottle, countWrongPassword } from "./throttle.ts"
