/** Streams: their names, their settings, and reads from their leader. */
export { assertStreamConfig, BucketsDiffer, bucketsOf, ensureActorBuckets,
  ensureBucket } from "./buckets.ts"
export { type ActorKeys, actorKeys, addressOfState, addressOfTimer, type Bucket, bucketNamed,
  idOfState, statesOfKind, statesOfShard, timersOf } from "./keys.ts"
export { LastSequence } from "./last-sequence.ts"
export { acknowledgedSequence, barrierReader, callApi, nextSequence, readLast, readLastFromLeader,
  readLastOfMany, scanStream, streamInfo, writtenAtMs } from "./reader.ts"
export { listSubjects, pagesOf } from "./subject-listing.ts"
