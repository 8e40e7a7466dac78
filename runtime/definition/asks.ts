/** Messages to actors of a definition: as effects, and as promises. */
import { Effect } from "effect"
import { type Address, type AskFailure, keyOf, type Peers, type Tagged } from "../actor/index.ts"
import type { SystemApi } from "../system.ts"
import { errorOf, InvalidMessage, unknownMessage } from "./errors.ts"
import type { ActorProtocol, ActorRef, Ask, MessageOf, PeerAsk } from "./reference.ts"

/** Any reference: inside, its types are not known. */
interface AnyRef extends Address {
  readonly protocol: Pick<
    ActorProtocol<Tagged, unknown, unknown>,
    "checkMessage" | "checkPeerMessage"
  >
}

/** Asks with a message that `check` accepts; what it refuses is not sent. */
const askChecked = (
  { ask }: Pick<Peers, "ask">,
  to: Address,
  check: () => Tagged
): Effect.Effect<unknown, AskFailure> =>
  Effect.suspend(() => {
    try {
      return ask(to, check())
    } catch (error) {
      if (error instanceof InvalidMessage) return Effect.fail(unknownMessage(keyOf(to), error))
      throw error
    }
  })

/**
 * Sends a message to an actor; its reply has the type that the definition infers. A message that is
 * not of the definition, or is internal, fails with `UnknownMessage` and is not sent.
 */
export const askActor = <
  Message extends Tagged,
  Replies,
  const Tag extends Message["_tag"] & keyof Replies
>(
  system: Pick<Peers, "ask">,
  to: ActorRef<Message, Replies>,
  message: MessageOf<Message, Tag>
): Effect.Effect<Replies[Tag], AskFailure> =>
  // A table replies to a message as the definition says.
  askChecked(system, to, () => to.protocol.checkMessage(message)) as Effect.Effect<
    Replies[Tag],
    AskFailure
  >

/** {@link askActor} for an effect of an actor, with its `peers`: it may send internal messages. */
export const askPeer = <
  Message extends Tagged,
  Replies,
  Internal extends Tagged,
  const Tag extends (Message | Internal)["_tag"] & keyof Replies
>(
  peers: Pick<Peers, "ask">,
  to: ActorRef<Message, Replies, unknown, Internal>,
  message: MessageOf<Message | Internal, Tag>
): Effect.Effect<Replies[Tag], AskFailure> =>
  // As in `askActor`.
  askChecked(peers, to, () => to.protocol.checkPeerMessage(message)) as Effect.Effect<
    Replies[Tag],
    AskFailure
  >

/** Asks by promises. */
const askBy = (
  check: "checkMessage" | "checkPeerMessage",
  send: (
    to: Address,
    message: Tagged,
    done: (failure: AskFailure | undefined, reply: unknown) => void
  ) => void
) =>
(to: AnyRef, message: Tagged): Promise<never> =>
  // As in `askActor`: the reply is what the definition says.
  new Promise<never>((resolve, reject) => {
    send(to, to.protocol[check](message), (failure, reply) => {
      if (failure === undefined) resolve(reply as never)
      else reject(errorOf(keyOf(to), failure))
    })
  })

/** {@link askActor} by promises, without an Effect on the way. */
export const askByCallback = ({ askByCallback: send }: Pick<SystemApi, "askByCallback">): Ask =>
  askBy("checkMessage", (to, message, done) => send(to, message, done))

/** {@link askActor} by promises, for an effect of an actor. */
export const askAsPeer = (
  { ask }: Pick<Peers, "ask">,
  fork: <A, E>(effect: Effect.Effect<A, E>) => unknown
): PeerAsk =>
  askBy("checkPeerMessage", (to, message, done) => {
    fork(Effect.match(ask(to, message), {
      onFailure: (failure) => done(failure, undefined),
      onSuccess: (reply) => done(undefined, reply)
    }))
  })
