/**
 * The failures of the runtime. They mean that an actor could not decide, or that a decision could
 * not be stored. A refusal is not a failure: it is a reply that a behavior decided.
 */
import { Schema } from "effect"

/** The state record has another revision than expected: reload the actor and decide again. */
export class RevisionConflict extends Schema.TaggedError<RevisionConflict>()("RevisionConflict", {
  key: Schema.String,
  expected: Schema.Number,
  actual: Schema.Number
}) {}

/** A log item with this number exists already: another activation appended it. */
export class LogConflict extends Schema.TaggedError<LogConflict>()("LogConflict", {
  key: Schema.String,
  item: Schema.Number
}) {}

/**
 * The store did not answer, or reported a temporary error; with `advice`, what its operator must do
 * before it can be used.
 */
export class StorageUnavailable
  extends Schema.TaggedError<StorageUnavailable>()("StorageUnavailable", {
    detail: Schema.String,
    advice: Schema.optionalKey(Schema.String)
  })
{}

/** A store may have kept the commit that it failed on: its log was written, and not flushed. */
const mayBeStored = Schema.optionalKey(Schema.Boolean)

/** The store is full; nothing of the commit was stored, unless `mayBeStored`. */
export class StorageFull extends Schema.TaggedError<StorageFull>()("StorageFull", {
  detail: Schema.String,
  mayBeStored
}) {}

/** A text is larger than the store takes: it can never be stored, and nothing of its commit was. */
export class ValueTooLarge extends Schema.TaggedError<ValueTooLarge>()("ValueTooLarge", {
  detail: Schema.String
}) {
  override get message(): string {
    return this.detail
  }
}

/**
 * The store is corrupted: a wrong checksum, a missing part or an unreadable record. Nothing of the
 * commit was stored, unless `mayBeStored`.
 */
export class StorageCorrupted extends Schema.TaggedError<StorageCorrupted>()("StorageCorrupted", {
  detail: Schema.String,
  mayBeStored
}) {}

/** Another process has opened the store. */
export class StorageLocked extends Schema.TaggedError<StorageLocked>()("StorageLocked", {
  path: Schema.String,
  pid: Schema.UndefinedOr(Schema.Number)
}) {}

/** What a call of a store can fail with. */
export type StorageFailure = StorageUnavailable | StorageFull | StorageCorrupted | ValueTooLarge

/**
 * The store has a format that this version cannot read. A message inserts the two texts: "the store
 * has `found`, and this version reads `supported`".
 */
export class StoreFormatUnsupported
  extends Schema.TaggedError<StoreFormatUnsupported>()("StoreFormatUnsupported", {
    found: Schema.String,
    supported: Schema.String
  })
{}

/** A blob has more bytes than its writer allowed; nothing of it was stored. */
export class BlobTooLarge extends Schema.TaggedError<BlobTooLarge>()("BlobTooLarge", {
  bytesMax: Schema.Number
}) {}

/** No blob has this id. */
export class BlobMissing extends Schema.TaggedError<BlobMissing>()("BlobMissing", {
  id: Schema.String
}) {}

/** The source of a blob failed, as in an aborted upload; nothing of it was stored. */
export class BlobAborted extends Schema.TaggedError<BlobAborted>()("BlobAborted", {
  detail: Schema.String
}) {}

/** The actor's inbox or the node is full; try again after `retryAfterMs`. */
export class Overloaded extends Schema.TaggedError<Overloaded>()("Overloaded", {
  key: Schema.String,
  retryAfterMs: Schema.Number
}) {}

/** The actor restarted too often, so it accepts no messages; try again after `retryAfterMs`. */
export class Quarantined extends Schema.TaggedError<Quarantined>()("Quarantined", {
  key: Schema.String,
  retryAfterMs: Schema.Number
}) {}

/** The behavior threw: a broken invariant. The cause is in the log. */
export class ActorDefect extends Schema.TaggedError<ActorDefect>()("ActorDefect", {
  key: Schema.String
}) {}

/** No node owns the shard at the moment; try again after `retryAfterMs`. */
export class NoOwner extends Schema.TaggedError<NoOwner>()("NoOwner", {
  key: Schema.String,
  retryAfterMs: Schema.Number
}) {}

/** No answer within the deadline; the message may or may not have been processed. */
export class AskTimeout extends Schema.TaggedError<AskTimeout>()("AskTimeout", {
  key: Schema.String,
  deadlineMs: Schema.Number
}) {}

/** The message or its reply has more bytes than the transport accepts. */
export class MessageTooLarge extends Schema.TaggedError<MessageTooLarge>()("MessageTooLarge", {
  key: Schema.String,
  bytesMax: Schema.Number
}) {}

/** No behavior of this kind is registered, or it cannot decode the message. */
export class UnknownMessage extends Schema.TaggedError<UnknownMessage>()("UnknownMessage", {
  key: Schema.String,
  detail: Schema.String
}) {}

/** All failures of an ask. */
export const AskFailure = Schema.Union([
  ActorDefect,
  AskTimeout,
  MessageTooLarge,
  NoOwner,
  Overloaded,
  Quarantined,
  StorageCorrupted,
  StorageFull,
  StorageUnavailable,
  UnknownMessage,
  ValueTooLarge
])

export type AskFailure = typeof AskFailure.Type

const indeterminate: ReadonlySet<AskFailure["_tag"]> = new Set<AskFailure["_tag"]>([
  "AskTimeout",
  "MessageTooLarge",
  "StorageUnavailable"
])

/** Whether the actor may have processed the message: nobody knows. */
export const isIndeterminate = (failure: AskFailure): boolean =>
  indeterminate.has(failure._tag) || ("mayBeStored" in failure && failure.mayBeStored === true)

/** The failure of a commit that the store may have kept. */
export const asIndeterminate = (failure: StorageFailure): StorageFailure => {
  const { detail } = failure
  switch (failure._tag) {
    case "StorageFull":
      return new StorageFull({ detail, mayBeStored: true })
    case "StorageCorrupted":
      return new StorageCorrupted({ detail, mayBeStored: true })
    case "StorageUnavailable":
    case "ValueTooLarge":
      return failure
  }
}
