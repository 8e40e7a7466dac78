/** Actors: behaviors, addresses, failures and the encoding of messages. */
export { type Address, address, fromKey, fromSubject, isActorId, keyOf, placingPart, shardOf,
  SHARDS, subjectOf } from "./address.ts"
export { type AnyBehavior, append, become, type Behavior, type BehaviorTable, Decision,
  type DecisionContext, isRefusal, type LogItem, type Peers, type Recall, type Refusal, refuse,
  stay, type Tagged, type Variant } from "./behavior.ts"
export { decodeMessage, decodeReply, encodeAskFailure, encodeMessage,
  encodeReply } from "./envelope.ts"
export { ActorDefect, asIndeterminate, type AskFailure, AskTimeout, BlobAborted, BlobMissing,
  BlobTooLarge, isIndeterminate, LogConflict, MessageTooLarge, NoOwner, Overloaded, Quarantined,
  RevisionConflict, StorageCorrupted, type StorageFailure, StorageFull, StorageLocked,
  StorageUnavailable, StoreFormatUnsupported, UnknownMessage, ValueTooLarge } from "./errors.ts"
export { decodeStoredState, encodeStoredState, firstFormat } from "./format.ts"
