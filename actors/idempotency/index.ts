/** Idempotency keys and the answers that they replay (protocol §0). */
export { idempotency } from "./actor.ts"
export { IdempotencyMessage, type IdempotencyReply, type StoredDeposit } from "./protocol.ts"
