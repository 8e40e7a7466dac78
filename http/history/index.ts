/** What a node remembers: samples of its figures, and what happened to the cluster. */
export { NodeHistory, type SeenEvent } from "./node-history.ts"
export type { Sample } from "./sample.ts"
export { eventText } from "./time-line.ts"
