/** Every port in memory: for tests, and for a node that keeps nothing. */
export { makeMemoryBlobs } from "./blobs.ts"
export { makeMemoryRecords } from "./records.ts"
export { makeMemoryRegistry } from "./registry.ts"
export { makeMemoryStorage } from "./storage.ts"
export { makeMemoryTransport } from "./transport.ts"
