/** Deposits of notifications (A2). */
export { acceptPost, authorizeDeposit, directDeposit, postMailbox,
  serviceBlock } from "./deposit.ts"
export { plainTextType, titleOf } from "./plain-text.ts"
