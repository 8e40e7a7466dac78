/** A node of defined actors: as a layer, and by promises. */
export { type ActorNodeOptions, actorSystem, type AnyActor } from "./actor-node.ts"
export { actorLog, type LogEntry, type LogOptions } from "./log.ts"
export { type ActorNode, startNode } from "./start-node.ts"
export { memory, type Store, type StorePorts } from "./store.ts"
