/** References to actors of a definition, typed by it, and what a message to one may be. */
import type { Address, Tagged, Variant } from "../actor/index.ts"

/** What a definition says of its actors to those who use them. */
export interface ActorProtocol<Message extends Tagged, Replies, Item> {
  readonly kind: string
  /** The message, checked by its Schema. Throws {@link InvalidMessage}. */
  readonly checkMessage: (input: unknown) => Message
  /** A log item from its stored text. Throws when it is not one. */
  readonly decodeItem: (text: string) => Item
  /** The types of the replies, by the tag of the message; it has no value. */
  readonly "~replies"?: Replies
}

/** The address of one actor, with its protocol: `counter("visits")`. */
export interface ActorRef<Message extends Tagged, Replies, Item = unknown> extends Address {
  readonly protocol: ActorProtocol<Message, Replies, Item>
}

/** A message of this tag. */
export type MessageOf<Message extends Tagged, Tag extends string> =
  & { readonly _tag: Tag }
  & Variant<Message, Tag>

/** Sends a message to an actor, and resolves with its reply. Rejects with an {@link ActorError}. */
export type Ask = <
  Message extends Tagged,
  Replies,
  const Tag extends Message["_tag"] & keyof Replies
>(
  to: ActorRef<Message, Replies>,
  message: MessageOf<Message, Tag>
) => Promise<Replies[Tag]>
