/** Streams of the store: their buckets, keys, reads, writes and listings. */
export { actorBuckets, assertStreamConfig, type BucketFailure, bucketFailure, BucketsDiffer,
  ensureActorBuckets, ensureBucket, openBucket } from "./buckets.ts"
export { type ActorKeys, actorKeys, addressOfSignal, addressOfState, type Bucket, bucketNamed,
  firstKeyOf, idOfState, parseTimerKey, placeEnd, placeOf, signalsOf, signalsOfKind, statesOfKind,
  statesOfShard, timeOfPlace, timerKey, timersFilter, timersPrefix } from "./keys.ts"
export { IdPager, inOrderOfId, listSubjects, pagesOf } from "./listing.ts"
export { acknowledgedSequence, barrierReader, callApi, isMarker, nextSequence, readFirstOfMany,
  readLast, readLastFromLeader, readLastOfMany, type StoredMessage, streamEnd, streamInfo,
  writtenAtMs } from "./reader.ts"
export { commitHeader, expectSequence, isFull, isSequenceConflict, makeIds, type NotStored,
  type StreamMessage, write, type WriteResult, wrongSequenceCode } from "./writer.ts"
