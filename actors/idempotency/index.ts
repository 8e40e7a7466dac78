/** Idempotency keys and the answers that they replay (protocol §0). */
export { idempotency, idempotencyKind } from "./actor.ts"
export { IdempotencyMessage, type IdempotencyReply } from "./protocol.ts"
