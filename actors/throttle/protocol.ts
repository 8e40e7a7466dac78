/**
 * Wrong passwords and tokens from one client address (protocol §1.1), or for one account from all
 * addresses: state, messages and replies. An actor's id is a hash of what is counted, so that
 * whichever node a client asks, its tries count together.
 */
import { Schema } from "effect"
import { Count } from "../schemas.ts"

export const ThrottleState = Schema.Union([
  Schema.TaggedStruct("Counting", {
    /** Wrong tries since `fromMs`. */
    count: Count,
    fromMs: Count,
    /** Which they were, where that is told. */
    tried: Schema.Array(Schema.String)
  })
])

export type ThrottleState = typeof ThrottleState.Type

/** What is counted: passwords of one address, tokens of one address, tokens for one account. */
const Counted = Schema.Literals(["passwords", "tokens", "account"])

export type Counted = typeof Counted.Type

export const ThrottleMessage = Schema.Union([
  /** Whether one may try. */
  Schema.TaggedStruct("Check", { of: Counted }),
  /**
   * Something wrong was tried. `try` is the beginning of its hash: the same one again is no guess
   * but a client that was not told of a change, and counts once.
   */
  Schema.TaggedStruct("RecordFailure", {
    of: Counted,
    try: Schema.optionalKey(Schema.String.check(Schema.isMaxLength(16)))
  }),
  Schema.TaggedStruct("TimerFired", {})
])

export type ThrottleMessage = typeof ThrottleMessage.Type

/** How long one has to wait before one may try, ms; 0 when one may. */
export type ThrottleReply = { readonly _tag: "Wait"; readonly waitMs: number }
