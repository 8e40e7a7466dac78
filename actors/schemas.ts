/** The schemas that kinds share, and the codecs of their records and messages. */
import { Schema } from "effect"

/**
 * The codecs of a behavior, whose record is the JSON of its state, and its timer message. A message
 * with an unknown property is an error.
 */
export const codecsOf = <State, Message>(
  state: Schema.Codec<State, unknown>,
  message: Schema.Codec<Message, unknown>
) => {
  const decode = Schema.decodeUnknownSync(state)
  return {
    // The schemas of states transform nothing, so that the state is its own encoded form.
    encode: (decoded: State): string => JSON.stringify(decoded),
    decode: (text: string): State => decode(JSON.parse(text)),
    decodeMessage: Schema.decodeUnknownSync(message, { onExcessProperty: "error" }),
    timerMessage: { _tag: "TimerFired" }
  } as const
}

/** SHA-256 as base64url without padding: the only form in which a state stores a secret. */
export const SecretHash = Schema.String.check(Schema.isPattern(/^[A-Za-z0-9_-]{43}$/))

/** A whole number from 0. */
export const Count = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))

/** The version that a conditional change expects; another one is PreconditionFailed. */
export const ifVersion = { ifVersion: Schema.optionalKey(Count) }

/** The caller of a message: an authenticated account, or anonymous. */
export const Caller = Schema.Struct({
  account: Schema.optionalKey(Schema.String),
  admin: Schema.Boolean
})

export type Caller = typeof Caller.Type
