/** Virtual time, seeded random numbers, and the trace of a run. */
export { EventHeap, type ScheduledEvent } from "./event-heap.ts"
export { pick, type Random, randomOf } from "./random.ts"
export { Trace } from "./trace.ts"
export { type Computer, epochMs, VirtualTime } from "./virtual-time.ts"
