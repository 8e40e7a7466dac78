/** The schemas that kinds share, and the codecs of their records and messages. */
import { Effect, Schema } from "effect"
import { address, type AskFailure, type Peers, type Refusal,
  type Tagged } from "../runtime/index.ts"

/**
 * The top-level fields of a stored state that this version does not know: a later version wrote
 * them. A decision that spreads the state keeps them, and `encode` writes them back, so that an
 * actor that moves to an older node and back loses nothing.
 */
export const laterFields: unique symbol = Symbol("fields of a later version")

/** A state that was decoded. */
export interface DecodedState {
  readonly [laterFields]?: Readonly<Record<string, unknown>> | undefined
}

/** Whether a later version has stored the state with fields that this one does not know. */
export const hasLaterFields = (state: object & DecodedState): boolean =>
  state[laterFields] !== undefined

/** Copies unknown fields of nested objects, which decisions pass on whole. */
const keepUnknown = (decoded: unknown, raw: unknown): void => {
  if (decoded === raw || typeof raw !== "object" || raw === null) return
  // Both come from one JSON document: objects of any fields, or arrays.
  const known = decoded as Record<string, unknown>
  for (const [name, value] of Object.entries(raw)) {
    if (Object.hasOwn(known, name)) keepUnknown(known[name], value)
    else Object.defineProperty(known, name, { value, enumerable: true, configurable: true })
  }
}

/** The codecs of a behavior, whose record is the JSON of its state, and its timer message. */
export const codecsOf = <State extends object, Message>(
  state: Schema.Codec<State, unknown>,
  message: Schema.Codec<Message, unknown>
) => {
  const decodeKnown = Schema.decodeUnknownSync(state)
  return {
    // The schemas of states transform nothing, so that the state is its own encoded form.
    encode: (decoded: State & DecodedState): string => {
      const later = decoded[laterFields]
      return JSON.stringify(later === undefined ? decoded : { ...decoded, ...later })
    },
    decode: (text: string): State => {
      const raw: unknown = JSON.parse(text)
      const decoded = decodeKnown(raw)
      const fields = Object.entries(raw as object) // a state is an object
      for (const [name, value] of fields) {
        if (name in decoded) keepUnknown(decoded[name as keyof State], value)
      }
      const later = fields.filter(([name]) => !(name in decoded))
      return later.length === 0 ? decoded : { ...decoded, [laterFields]: Object.fromEntries(later) }
    },
    decodeMessage: Schema.decodeUnknownSync(message),
    timerMessage: { _tag: "TimerFired" }
  } as const
}

/** Sends messages to actors of one kind, by id; an actor replies in its own protocol only. */
export const askerOf = <Message extends Tagged, Reply>(kind: string) =>
(
  peers: Pick<Peers, "ask">,
  id: string,
  message: Message
): Effect.Effect<Reply | Refusal, AskFailure> =>
  // Replies are not typed by kind.
  peers.ask(address(kind, id), message) as Effect.Effect<Reply | Refusal, AskFailure>

/** SHA-256 as base64url without padding: the only form in which a state stores a secret. */
export const SecretHash = Schema.String.check(Schema.isPattern(/^[A-Za-z0-9_-]{43}$/))

/** 128 bits as base64url without padding: a random id, or a digest. */
export const Base64Id = Schema.String.check(Schema.isPattern(/^[A-Za-z0-9_-]{22}$/))

/** A whole number from 0. */
export const Count = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))

/** A count that is 0 if the record is of an older version, which does not have the field. */
export const CountOrZero = Count.pipe(Schema.withDecodingDefaultKey(Effect.succeed(0)))

/** The version that a conditional change expects; another one is PreconditionFailed. */
export const ifVersion = { ifVersion: Schema.optionalKey(Count) }

/**
 * The kind of accounts. It is not in their module, which imports those of what an account owns:
 * these report failures to accounts.
 */
export const accountKind = "account"

/** The caller of a message: an authenticated account, or anonymous. */
export const Caller = Schema.Struct({
  account: Schema.optionalKey(Schema.String),
  admin: Schema.Boolean
})

export type Caller = typeof Caller.Type
