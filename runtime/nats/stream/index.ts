/** Streams: their names, their settings, and reads from their leader. */
export { assertFit, BucketsDiffer, bucketsOf, makeBucket, makeBuckets } from "./buckets.ts"
export { type ActorKeys, actorKeys, addressOfState, addressOfTimer, type BucketPlace, idOfState,
  placeOf, statesOf, statesOfShard, timersOf } from "./keys.ts"
export { LastSequence } from "./last-sequence.ts"
export { api, coveredBy, info, last, lastOfLeader, lastOfMany, momentOf, nextSeqOf, walk,
  writtenMsOf } from "./reader.ts"
export { pieces, subjectsOf } from "./subject-listing.ts"
