/**
 * Wrong passwords from one client address (protocol §1.1): state, messages and replies. An actor's
 * id is a hash of the address, so that whichever node a client asks, its tries count together.
 */
import { Schema } from "effect"
import { Count } from "../binding.ts"

export const State = Schema.Union([
  /** `count` wrong tries since `fromMs`. */
  Schema.TaggedStruct("Counting", { count: Count, fromMs: Count })
])
export type State = typeof State.Type

export const Message = Schema.Union([
  /** Whether the address may try. */
  Schema.TaggedStruct("Look", {}),
  /** It has tried a wrong password. */
  Schema.TaggedStruct("Wrong", {}),
  Schema.TaggedStruct("WakeUp", {})
])
export type Message = typeof Message.Type

/** How long the address has to wait before it may try, ms; 0 when it may. */
export type Reply = { readonly _tag: "Wait"; readonly waitMs: number }
