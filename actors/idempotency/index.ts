/** Idempotency keys and the answers that they replay (protocol §0). */
export { idempotency } from "./actor.ts"
export { type EarlierDeposit, IdempotencyMessage, type IdempotencyReply } from "./protocol.ts"
