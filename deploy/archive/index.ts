/** Archives of whole stores: backup, restore and migration. */
export { explained } from "./failure-messages.ts"
export { type BlobPart, Counter, type Counts, rowsOf } from "./parts.ts"
export { archiveOf, type ArchiveSource, blobOf, partsOf } from "./store-reader.ts"
export { type ArchiveFailure, type BackedUp, openSource } from "./stores.ts"
export { backUp, backUpRunning, type Filled, migrate, restore, type Seen } from "./transfer.ts"
