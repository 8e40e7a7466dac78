/**
 * The failures of the runtime, tagged. A refusal is not among them: a refusal is a reply that a
 * behavior decided on; these say that no decision could be had or kept.
 */
import { Schema } from "effect"

/** The state record moved past the expected revision: reload and decide again. */
export class RevisionConflict extends Schema.TaggedError<RevisionConflict>()("RevisionConflict", {
  key: Schema.String,
  expected: Schema.Number,
  actual: Schema.Number
}) {}

/** A log item of this number is there already: another activation appended it. */
export class LogConflict extends Schema.TaggedError<LogConflict>()("LogConflict", {
  key: Schema.String,
  item: Schema.Number
}) {}

/** The store did not answer, or answered with an error that may pass. */
export class StorageUnavailable
  extends Schema.TaggedError<StorageUnavailable>()("StorageUnavailable", {
    detail: Schema.String
  })
{}

/** The store has no room left; nothing of the commit was kept. */
export class StorageFull extends Schema.TaggedError<StorageFull>()("StorageFull", {
  detail: Schema.String
}) {}

/** What the store holds contradicts itself: a checksum, a missing part, an unreadable record. */
export class StorageCorrupted extends Schema.TaggedError<StorageCorrupted>()("StorageCorrupted", {
  detail: Schema.String
}) {}

/** The store is held by another process. */
export class StorageLocked extends Schema.TaggedError<StorageLocked>()("StorageLocked", {
  path: Schema.String,
  pid: Schema.UndefinedOr(Schema.Number)
}) {}

export type StorageFailure = StorageUnavailable | StorageFull | StorageCorrupted

/** Another version wrote the store, in a format that this version does not read. */
export class StoreFormatUnsupported
  extends Schema.TaggedError<StoreFormatUnsupported>()("StoreFormatUnsupported", {
    found: Schema.String,
    supported: Schema.String
  })
{}

/** A blob grew past the bytes that its writer allowed; nothing of it was kept. */
export class BlobTooLarge extends Schema.TaggedError<BlobTooLarge>()("BlobTooLarge", {
  bytesMax: Schema.Number
}) {}

/** There is no blob of this id. */
export class BlobMissing extends Schema.TaggedError<BlobMissing>()("BlobMissing", {
  id: Schema.String
}) {}

/** The source of a blob ended in error (an aborted upload); nothing of it was kept. */
export class BlobAborted extends Schema.TaggedError<BlobAborted>()("BlobAborted", {
  detail: Schema.String
}) {}

/** The actor's queue, or the node, holds as much as it may; try again after `retryAfterMs`. */
export class Overloaded extends Schema.TaggedError<Overloaded>()("Overloaded", {
  key: Schema.String,
  retryAfterMs: Schema.Number
}) {}

/** The actor failed too often and rests until the time named. */
export class Quarantined extends Schema.TaggedError<Quarantined>()("Quarantined", {
  key: Schema.String,
  retryAfterMs: Schema.Number
}) {}

/** The behavior itself threw: a broken invariant. The cause is in the log. */
export class ActorDefect extends Schema.TaggedError<ActorDefect>()("ActorDefect", {
  key: Schema.String
}) {}

/** No node owns the shard just now, or it moves: try again after `retryAfterMs`. */
export class NoOwner extends Schema.TaggedError<NoOwner>()("NoOwner", {
  key: Schema.String,
  retryAfterMs: Schema.Number
}) {}

/** No answer within the deadline; whether the message was taken is unknown. */
export class AskTimeout extends Schema.TaggedError<AskTimeout>()("AskTimeout", {
  key: Schema.String,
  deadlineMs: Schema.Number
}) {}

/** The message or its reply has more bytes than the transport carries; nobody decided on it. */
export class MessageTooLarge extends Schema.TaggedError<MessageTooLarge>()("MessageTooLarge", {
  key: Schema.String,
  bytesMax: Schema.Number
}) {}

/** No behavior of this kind is registered, or the message is none of its own. */
export class UnknownMessage extends Schema.TaggedError<UnknownMessage>()("UnknownMessage", {
  key: Schema.String,
  detail: Schema.String
}) {}

/** Everything that an ask can fail with. */
export type AskFailure =
  | StorageFailure
  | Overloaded
  | Quarantined
  | ActorDefect
  | NoOwner
  | AskTimeout
  | MessageTooLarge
  | UnknownMessage
