/**
 * An idempotency key (protocol §0, Repeating): its state record, its messages and its replies.
 * The actor's id is a hash of the key and of its client. The key of a deposit is in the shard of
 * its mailbox: `<mailbox>=<hash>`.
 */
import { Schema } from "effect"
import { Count } from "../schemas.ts"

/**
 * The id of one execution of the request: `<node>.<start of the node>.<random>`. An
 * attempt of an earlier start of the same node cannot run any more.
 */
const attempt = Schema.String

/** A digest of the request: another request under the same key is recognized. */
const fingerprint = Schema.String

/** Number of the log item that a deposit has become; unknown after a crash. */
const Stored = Schema.Struct({ n: Schema.optionalKey(Count) })

/** The deposit of an earlier attempt. */
export interface EarlierDeposit extends Schema.Schema.Type<typeof Stored> {
  /** When the key was used first: the deposit is not older. */
  readonly firstAtMs: number
  /** Whether it was stored for certain. */
  readonly isCertain: boolean
}

export const IdempotencyState = Schema.Union([
  Schema.TaggedStruct("Absent", {}),
  Schema.TaggedStruct("Begun", {
    attempt,
    firstAtMs: Count,
    /** 0: the attempt has ended. */
    attemptAtMs: Count,
    fingerprint: Schema.optionalKey(fingerprint),
    /** The outcome of an earlier attempt is unknown. */
    isDoubtful: Schema.optionalKey(Schema.Boolean),
    /** An attempt has stored its deposit. */
    stored: Schema.optionalKey(Stored)
  }),
  Schema.TaggedStruct("Done", {
    attempt,
    firstAtMs: Count,
    fingerprint,
    /** The answer, encrypted by the HTTP side, since it may contain secrets. */
    sealed: Schema.String
  })
])

export type IdempotencyState = typeof IdempotencyState.Type

export const IdempotencyMessage = Schema.Union([
  /** The fingerprint of a stream is known at its end only. */
  Schema.TaggedStruct("Begin", { attempt, fingerprint: Schema.optionalKey(fingerprint) }),
  Schema.TaggedStruct("Complete", { attempt, fingerprint, sealed: Schema.String }),
  /** The attempt was refused and changed nothing, or never ran. */
  Schema.TaggedStruct("Abandon", { attempt }),
  /** The outcome is unknown or its response is not stored: the key is kept for a repetition. */
  Schema.TaggedStruct("Interrupt", { attempt, fingerprint: Schema.optionalKey(fingerprint) }),
  Schema.TaggedStruct("TimerFired", {})
])

export type IdempotencyMessage = typeof IdempotencyMessage.Type

export type IdempotencyReply =
  /** Carry the request out, then complete, abandon or interrupt it. */
  | { readonly _tag: "Proceed"; readonly earlier?: EarlierDeposit }
  /** Another attempt is running: 409. */
  | { readonly _tag: "InProgress" }
  /** The key belongs to another request, whose outcome is unknown: 422. */
  | { readonly _tag: "OtherRequest" }
  /** The stored response. */
  | { readonly _tag: "Done"; readonly fingerprint: string; readonly sealed: string }
  | { readonly _tag: "Acknowledged" }
