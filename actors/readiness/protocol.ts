/** A check whether a node commits and reads (protocol §6): state, messages and replies. */
import { Schema } from "effect"

export const ReadinessState = Schema.Union([
  /** What it has committed last is the only item of its log. */
  Schema.TaggedStruct("Checked", {})
])

export type ReadinessState = typeof ReadinessState.Type

export const ReadinessMessage = Schema.Union([
  /** Replaces the log item by a new one. */
  Schema.TaggedStruct("Check", {}),
  Schema.TaggedStruct("TimerFired", {})
])

export type ReadinessMessage = typeof ReadinessMessage.Type

/** The number of the new log item, which is durable. */
export type ReadinessReply = { readonly _tag: "Committed"; readonly n: number }
