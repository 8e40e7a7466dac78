/** The schemas that kinds share, and the codecs of their records and messages. */
import { Schema } from "effect"

/** `encode` and `decode` of a behavior whose record is the JSON of its state. */
export const jsonRecord = <State>(
  schema: Schema.Codec<State, unknown>
): { readonly encode: (state: State) => string; readonly decode: (text: string) => State } => {
  const decoded = Schema.decodeUnknownSync(schema)
  return {
    // The schemas of states transform nothing, so that the state is its own encoded form.
    encode: (state) => JSON.stringify(state),
    decode: (text) => decoded(JSON.parse(text))
  }
}

/** `decodeMessage` of a behavior: an unknown property is an error. */
export const strictMessage = <Message>(
  schema: Schema.Codec<Message, unknown>
): (input: unknown) => Message => Schema.decodeUnknownSync(schema, { onExcessProperty: "error" })

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
