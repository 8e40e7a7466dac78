/** Actors in JetStream key-value buckets. */
export { type ActorEntry, isLiveItem, itemCount, itemsOf, parseEntry } from "./actor-entry.ts"
export { loadEntry, readLog } from "./actor-log.ts"
export { natsStorage } from "./storage.ts"
