/** Backup, restore, migration and verification of stores. */
export type { Filled, Seen } from "./archive.ts"
export type { BackedUp } from "./stores.ts"
