/**
 * The memory of one idempotency key (protocol §0, Repeating): its state record, its messages
 * and its replies. An address's id is a hash of whose key it is and of the key.
 */
import { Schema } from "effect"
import { Count } from "../schemas.ts"

/**
 * One for each time that the request is carried out: `<node>.<start of the node>.<random>`. An
 * attempt of an earlier start of the same node cannot run any more.
 */
const attempt = Schema.String

export const IdempotencyState = Schema.Union([
  Schema.TaggedStruct("Absent", {}),
  Schema.TaggedStruct("Begun", { attempt, firstAtMs: Count, attemptAtMs: Count }),
  Schema.TaggedStruct("Done", {
    attempt,
    firstAtMs: Count,
    /** Of the request's body, so that another body under the same key is noticed. */
    bodyDigest: Schema.String,
    /** The answer, sealed by who gave it: it may hold secrets. */
    sealed: Schema.String
  })
])

export type IdempotencyState = typeof IdempotencyState.Type

export const IdempotencyMessage = Schema.Union([
  Schema.TaggedStruct("Begin", { attempt }),
  Schema.TaggedStruct("Complete", {
    attempt,
    bodyDigest: Schema.String,
    sealed: Schema.String
  }),
  /** The request was refused and changed nothing: the key is free again. */
  Schema.TaggedStruct("Abandon", { attempt }),
  Schema.TaggedStruct("TimerFired", {})
])

export type IdempotencyMessage = typeof IdempotencyMessage.Type

export type IdempotencyReply =
  /** Carry the request out, then complete or abandon it. */
  | { readonly _tag: "Proceed" }
  /** Another attempt is running: 409. */
  | { readonly _tag: "InProgress" }
  /** The stored response. */
  | { readonly _tag: "Done"; readonly bodyDigest: string; readonly sealed: string }
  | { readonly _tag: "Acknowledged" }
