/** The transport of a node that stands alone: within its process. */
export { makeMemoryTransport as makeTransport } from "../ports/memory-transport.ts"
