/** Counts of wrong passwords and tokens (protocol §1.1). */
export { throttle, throttleKind } from "./actor.ts"
export { type Counted, ThrottleMessage, type ThrottleReply } from "./protocol.ts"
