/** Requests of clients to actors of a definition, typed by it, and their outcomes. */
import type { Address, Tagged, Variant } from "../../actor/index.ts"
import type { ActorProtocol, ActorRef } from "../../definition/index.ts"
import type { ReceivedReply, SimulatedRequest } from "./options.ts"

/**
 * A request to an actor of a definition: its types are those of `node.ask`. The message may be a
 * function of the replies that the client has received so far. A message that nobody may send from
 * outside of the actors, such as an internal one, throws an `InvalidMessage` here; to test what a
 * node does with it, write the request as a record.
 */
export const request = <Message extends Tagged, Replies>(
  to: ActorRef<Message, Replies>,
  message: NoInfer<
    Message | ((received: ReadonlyArray<ReceivedReply>) => Message | undefined)
  >,
  options: Pick<SimulatedRequest, "attempts"> = {}
): SimulatedRequest => {
  const { checkMessage } = to.protocol
  if (typeof message !== "function") return { ...options, to, message: checkMessage(message) }
  return {
    ...options,
    to,
    message: (received) => {
      const made = message(received)
      return made === undefined ? undefined : checkMessage(made)
    }
  }
}

/** A message to an actor, with its reply. */
interface RepliedMessage {
  readonly to: Address
  readonly message: Tagged
  readonly reply: unknown
}

/**
 * Those of the attempts of clients, or of the replies that one has received, whose message to an
 * actor of this definition has this tag: with the types of the message and the reply. The reply is
 * undefined for an attempt without an answer.
 */
export const withMessage = <
  Item extends RepliedMessage,
  Message extends Tagged,
  Replies,
  const Tag extends Message["_tag"] & keyof Replies
>(
  items: ReadonlyArray<Item>,
  { kind }: ActorProtocol<Message, Replies, unknown>,
  tag: Tag
): ReadonlyArray<
  & Omit<Item, "message" | "reply">
  & { readonly message: Variant<Message, Tag>; readonly reply: Replies[Tag] | undefined }
> =>
  items.filter(({ message, to }) => to.kind === kind && message._tag === tag)
    // The actors of this kind take and answer what their definition says.
    .map((item) => item as never)
