/** Actors in JetStream key-value buckets. */
export { type ActorEntry, COMMIT, countOf, entryOf, isItem, isMarker,
  itemsOf } from "./actor-entry.ts"
export { loadEntry, readLog } from "./actor-log.ts"
export { natsStorage } from "./storage.ts"
