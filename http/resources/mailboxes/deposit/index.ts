/** Deposits of notifications (A2). */
export { acceptPost, directDeposit, postMailbox, serviceBlock } from "./deposit.ts"
export { plainTextType } from "./plain-text.ts"
