/**
 * Wrong passwords and tokens from one client address (protocol §1.1), or for one account from all
 * addresses: state, messages and replies. An actor's id is a hash of the account or address, so
 * that all nodes count together.
 */
import { Schema } from "effect"
import { Count } from "../schemas.ts"

/** The beginning of the hash of what is tried. */
const Attempt = Schema.String.check(Schema.isMaxLength(16))

export const ThrottleState = Schema.Union([
  Schema.TaggedStruct("Counting", {
    /** How many wrong passwords or tokens were sent since `fromMs`. */
    count: Count,
    fromMs: Count,
    /** The `try` of each of them that had one. */
    tried: Schema.Array(Schema.String),
    /** The attempts that are being checked, each until nobody waits for its end any more. */
    checking: Schema.optionalKey(Schema.Array(Schema.Struct({ attempt: Attempt, untilMs: Count })))
  })
])

export type ThrottleState = typeof ThrottleState.Type

/**
 * What is counted: passwords of one address; tokens of one address; or, as `account`, what many
 * addresses send together: tokens for one account, or passwords from one network.
 */
const Counted = Schema.Literals(["passwords", "tokens", "account"])

export type Counted = typeof Counted.Type

export const ThrottleMessage = Schema.Union([
  /**
   * Returns how long the client must wait before its next attempt. An attempt that `begins` counts
   * as long as it is being checked, so that many at once are no more than one after the other; a
   * right one `ends` uncounted. A node of an earlier version ignores both, and only returns the
   * wait.
   */
  Schema.TaggedStruct("Check", {
    of: Counted,
    begins: Schema.optionalKey(Attempt),
    ends: Schema.optionalKey(Attempt)
  }),
  /**
   * Counts a wrong password or token. `try` is the beginning of its hash. The same `try` counts
   * once: a client that repeats it has outdated credentials, and does not guess. `attempt` is the
   * one that began and was wrong.
   */
  Schema.TaggedStruct("RecordFailure", {
    of: Counted,
    try: Schema.optionalKey(Attempt),
    attempt: Schema.optionalKey(Attempt)
  }),
  Schema.TaggedStruct("TimerFired", {})
])

export type ThrottleMessage = typeof ThrottleMessage.Type

/**
 * How long the client must wait before the next attempt, in ms; 0 if it need not wait. If it
 * `isFull`, the attempts that are being checked may use up the limit: one that wants to begin waits
 * for their ends.
 */
export interface ThrottleReply {
  readonly _tag: "Wait"
  readonly waitMs: number
  readonly isFull?: true
}
