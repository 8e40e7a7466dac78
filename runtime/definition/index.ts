/** Definitions of actors: the API for programs that run actors of their own. */
export { type ActorDecision, append, become, type DataRefusal, type IntervalOptions,
  type PlainRefusal, refuse, stay } from "./actor-decision.ts"
export { askActor, askPeer } from "./asks.ts"
export type { CellContext } from "./cells.ts"
export { type ActorDefinition, type ActorOptions, type ActorTable, defineActor, type ItemKeys,
  type PerformContext, type Performers, type RepliesOf } from "./define.ts"
export { ActorError, ActorFailed, ActorUnavailable, CommitRejected, type FailedOutcome,
  InvalidMessage, LogUnreadable, NodeStartFailed, OutcomeUnknown } from "./errors.ts"
export { type Migration, migration } from "./migration.ts"
export { actorLog, type ActorNode, type ActorNodeOptions, actorSystem, type AnyActor, type LogEntry,
  type LogOptions, memory, startNode, type Store, type StorePorts } from "./node/index.ts"
export type { MissedTicks, Tick } from "./recurrence.ts"
export type { ActorProtocol, ActorRef, Ask, MessageOf, PeerAsk } from "./reference.ts"
export { casesOf, type JsonValue, type ReplyValue, type Shape, type ShapeValue,
  type Variants } from "./shapes.ts"
