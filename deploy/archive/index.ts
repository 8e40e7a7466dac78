/** Archives of whole stores: backup, restore and migration. */
export { archiveFailed } from "./failure-messages.ts"
export { BlobChecksum, type BlobPart, Counter, type Counts, rowsOf } from "./parts.ts"
export { archiveOf, type ArchiveSource, blobOf, partsOf } from "./store-reader.ts"
export { StoredSecrets } from "./stored-secrets.ts"
export { type ArchiveFailure, openSource } from "./stores.ts"
export { backUp, backUpRunning, migrate, type OnProgress, restore,
  type RestoreResult } from "./transfer.ts"
