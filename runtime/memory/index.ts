/** Every port in memory: for tests, and for a node that keeps nothing. */
export { makeMemoryBlobs, memoryBlobs } from "./blobs.ts"
export { makeMemoryRecords, memoryRecords } from "./records.ts"
export { makeMemoryRegistry } from "./registry.ts"
export { makeMemoryStorage, memoryStorage } from "./storage.ts"
export { makeMemoryTransport, memoryTransport } from "./transport.ts"
