/** Messages to actors of a definition: as effects, and as promises. */
import { Effect } from "effect"
import { type Address, type AskFailure, keyOf, type Peers, type Tagged } from "../actor/index.ts"
import type { SystemApi } from "../system.ts"
import { errorOf, InvalidMessage, unknownMessage } from "./errors.ts"
import type { ActorRef, Ask, MessageOf } from "./reference.ts"

/** Sends a message to an actor; its reply has the type that the definition infers. */
export const askActor = <
  Message extends Tagged,
  Replies,
  const Tag extends Message["_tag"] & keyof Replies
>(
  { ask }: Pick<Peers, "ask">,
  to: ActorRef<Message, Replies>,
  message: MessageOf<Message, Tag>
): Effect.Effect<Replies[Tag], AskFailure> =>
  Effect.suspend(() => {
    try {
      // A table replies to a message as the definition says.
      return ask(to, to.protocol.checkMessage(message)) as Effect.Effect<Replies[Tag], AskFailure>
    } catch (error) {
      if (error instanceof InvalidMessage) return Effect.fail(unknownMessage(keyOf(to), error))
      throw error
    }
  })

/** Asks by promises. */
const askBy = (
  send: (
    to: Address,
    message: Tagged,
    done: (failure: AskFailure | undefined, reply: unknown) => void
  ) => void
): Ask =>
(to, message) =>
  // As in `askActor`: the reply is what the definition says.
  new Promise<never>((resolve, reject) => {
    send(to, to.protocol.checkMessage(message), (failure, reply) => {
      if (failure === undefined) resolve(reply as never)
      else reject(errorOf(keyOf(to), failure))
    })
  })

/** {@link askActor} by promises, without an Effect on the way. */
export const askByCallback = ({ askByCallback: send }: Pick<SystemApi, "askByCallback">): Ask =>
  askBy((to, message, done) => send(to, message, done))

/** {@link askActor} by promises, for an effect of an actor. */
export const askAsPeer = (
  { ask }: Pick<Peers, "ask">,
  fork: <A, E>(effect: Effect.Effect<A, E>) => unknown
): Ask =>
  askBy((to, message, done) => {
    fork(Effect.match(ask(to, message), {
      onFailure: (failure) => done(failure, undefined),
      onSuccess: (reply) => done(undefined, reply)
    }))
  })
