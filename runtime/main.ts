/**
 * The runtime for programs that need not know Effect: definitions of actors, and a node by
 * promises. `index.ts` has the Effect face, and what both are made of.
 */
export { Schema } from "effect"
export { type Address, isRefusal, type Refusal } from "./actor/index.ts"
export { type ActorDecision, type ActorDefinition, ActorError, ActorFailed, type ActorNode,
  type ActorNodeOptions, type ActorRef, ActorUnavailable, append, become, type CellContext,
  CommitRejected, type DataRefusal, defineActor, InvalidMessage, type LogEntry, type LogOptions,
  LogUnreadable, memory, migration, type MissedTicks, NodeStartFailed, OutcomeUnknown,
  type PerformContext, type PlainRefusal, refuse, startNode, stay, type Store,
  type Tick } from "./definition/index.ts"
