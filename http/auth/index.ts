/** Who calls: accounts, passwords, and protection against guessing and CSRF. */
export { isForged } from "./csrf.ts"
export { accountIfNamed, accountOf, type AuthenticatedAccount, callerOf, countingRefused, isIssued,
  offeredAccount, requireAccount, requireAdmin } from "./identity.ts"
export { mayTry, triedWrong } from "./throttle.ts"
