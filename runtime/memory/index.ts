/** Every port in memory: for tests, and for a node that keeps nothing. */
export { makeMemoryStorage } from "./storage.ts"
export { makeMemoryTransport, memoryTransport } from "./transport.ts"
