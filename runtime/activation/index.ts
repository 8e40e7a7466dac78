/** One live actor in memory, and the directory, supervision and effects of a node's live actors. */
export { Activation, type ActivationContext } from "./activation.ts"
export { ActivationDirectory } from "./directory.ts"
export { Effects, type MessageStep } from "./effects.ts"
export { decodeInspection, inspect, type Inspection } from "./inspection.ts"
export { askAsEffect, ignoreReply, type ReplyCallback } from "./pending-commit.ts"
export { RecallReads } from "./recovery.ts"
export { type Quarantine, Supervisor } from "./supervisor.ts"
