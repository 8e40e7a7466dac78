/** Actors in the embedded store: one open database and its group writer. */
export { type OpenFailure, openFailure, openVerified } from "./integrity.ts"
export { LogSweeper } from "./log-sweeper.ts"
export { itemsIn, makeStorage, parseRecord } from "./storage.ts"
export { EmbeddedStore, openStore } from "./store.ts"
