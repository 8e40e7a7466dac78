/** The audit log: its state record, its messages and its replies (protocol §7). */
import { Schema } from "effect"
import { auditAccountCharsMax, auditActionCharsMax, auditDetailCharsMax,
  auditTargetCharsMax } from "../limits.ts"
import { Count, SecretHash } from "../schemas.ts"

const upTo = (charsMax: number) => Schema.String.check(Schema.isMaxLength(charsMax))

/**
 * What is known of an operation. `begun`: it may have happened, and another entry will say so.
 * `unknown`: the service ended, or the store did not answer, before its outcome was known.
 */
export const AuditOutcome = Schema.Literals(["begun", "done", "refused", "unknown"])

export type AuditOutcome = typeof AuditOutcome.Type

/** An operation: who did what to what, and from where. It has no secret and no content. */
const operation = {
  /** The account; left out for an anonymous client, and for the service itself. */
  account: Schema.optionalKey(upTo(auditAccountCharsMax)),
  /** The client's address; an IPv6 address as its /64. */
  from: Schema.optionalKey(upTo(auditAccountCharsMax)),
  action: upTo(auditActionCharsMax),
  /** The path of the resource, without the secrets in it. */
  target: upTo(auditTargetCharsMax),
  /** What else is worth knowing, such as the roles of an account. */
  detail: Schema.optionalKey(upTo(auditDetailCharsMax)),
  /** How often it has happened within an hour, where only some are recorded. */
  count: Schema.optionalKey(Count)
}

export const AuditOperation = Schema.Struct(operation)

export type AuditOperation = typeof AuditOperation.Type

/** An entry without the hash of the previous one. */
export const AuditEntry = Schema.Struct({
  atMs: Count,
  ...operation,
  outcome: AuditOutcome,
  /** The number of the entry that says that the operation began. */
  of: Schema.optionalKey(Count)
})

export type AuditEntry = typeof AuditEntry.Type

/** A place in the chain: the number, hash and time of an entry; all 0 before the first. */
export const ChainPoint = Schema.Struct({ n: Count, hash: SecretHash, atMs: Count })

export type ChainPoint = typeof ChainPoint.Type

export const AuditState = Schema.Union([
  Schema.TaggedStruct("Recording", {
    /** The last entry. */
    last: ChainPoint,
    /** The last entry that was removed at its age. The first stored entry has its hash. */
    anchor: ChainPoint,
    /** Operations whose outcome is not recorded yet, oldest first; `auditOpenMax` at most. */
    open: Schema.Array(Schema.Struct({ n: Count, atMs: Count })),
    /** When the log next looks for old entries. */
    trimAtMs: Count
  })
])

export type AuditState = typeof AuditState.Type

export const AuditMessage = Schema.Union([
  /** Records that an operation begins. Refused as Busy if too many are under way. */
  Schema.TaggedStruct("Begin", { operation: AuditOperation }),
  /** Records the outcome of the operation that began with entry `n`. */
  Schema.TaggedStruct("End", { n: Count, operation: AuditOperation, outcome: AuditOutcome }),
  /** Records an operation and its outcome in one entry. */
  Schema.TaggedStruct("Record", { operation: AuditOperation, outcome: AuditOutcome }),
  /** Returns both ends of the chain. */
  Schema.TaggedStruct("Describe", {}),
  /** The result of ReadOpen: operations that ended without an outcome. */
  Schema.TaggedStruct("Lapse", {
    attempts: Schema.Array(
      Schema.Struct({ n: Count, operation: Schema.optionalKey(AuditOperation) })
    )
  }),
  /** The result of ReadOldest: all entries up to this one are to be removed. */
  Schema.TaggedStruct("Trim", { upTo: ChainPoint }),
  Schema.TaggedStruct("TimerFired", {})
])

export type AuditMessage = typeof AuditMessage.Type

export type AuditReply =
  /** The entry is stored with this number. */
  | { readonly _tag: "Recorded"; readonly n: number }
  | { readonly _tag: "Described"; readonly last: ChainPoint; readonly anchor: ChainPoint }

export type AuditAction =
  /** Reads the entries of operations without an outcome. Its result is Lapse. */
  | { readonly _tag: "ReadOpen"; readonly numbers: ReadonlyArray<number> }
  /**
   * Reads the entries after `from`, and finds those that are older than `beforeMs`, or not among
   * the last that the log keeps. Its result is Trim.
   */
  | {
    readonly _tag: "ReadOldest"
    readonly from: ChainPoint
    readonly beforeMs: number
    readonly surplusUpTo: number
  }
