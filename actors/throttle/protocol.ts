/**
 * Wrong passwords and tokens from one client address (protocol §1.1), or for one account from all
 * addresses: state, messages and replies. An actor's id is a hash of the account or address, so
 * that all nodes count together.
 */
import { Schema } from "effect"
import { Count } from "../schemas.ts"

export const ThrottleState = Schema.Union([
  Schema.TaggedStruct("Counting", {
    /** How many wrong passwords or tokens were sent since `fromMs`. */
    count: Count,
    fromMs: Count,
    /** The `try` of each of them that had one. */
    tried: Schema.Array(Schema.String)
  })
])

export type ThrottleState = typeof ThrottleState.Type

/** What is counted: passwords of one address, tokens of one address, or tokens for one account. */
const Counted = Schema.Literals(["passwords", "tokens", "account"])

export type Counted = typeof Counted.Type

export const ThrottleMessage = Schema.Union([
  /** Returns how long the client must wait before its next attempt. */
  Schema.TaggedStruct("Check", { of: Counted }),
  /**
   * Counts a wrong password or token. `try` is the beginning of its hash. The same `try` counts
   * once: a client that repeats it has outdated credentials, and does not guess.
   */
  Schema.TaggedStruct("RecordFailure", {
    of: Counted,
    try: Schema.optionalKey(Schema.String.check(Schema.isMaxLength(16)))
  }),
  Schema.TaggedStruct("TimerFired", {})
])

export type ThrottleMessage = typeof ThrottleMessage.Type

/** How long the client must wait before the next attempt, in ms; 0 if it need not wait. */
export type ThrottleReply = { readonly _tag: "Wait"; readonly waitMs: number }
