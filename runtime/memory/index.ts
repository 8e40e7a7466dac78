/** Every port in memory: for tests, and for a node that keeps nothing. */
export { makeMemoryTransport } from "./transport.ts"
