/** References to actors of a definition, typed by it, and what a message to one may be. */
import type { Address, Tagged, Variant } from "../actor/index.ts"

/**
 * What a definition says of its actors to those who use them. `Message` is what anybody may send,
 * `Internal` what only effects may send besides.
 */
export interface ActorProtocol<
  Message extends Tagged,
  Replies,
  Item,
  Internal extends Tagged = Tagged
> {
  readonly kind: string
  /** The tags of the messages that only effects may send. */
  readonly internal: ReadonlyArray<string>
  /**
   * A message from outside of the actors, checked by its Schema. Throws {@link InvalidMessage}, for
   * an internal message too.
   */
  readonly checkMessage: (input: unknown) => Message
  /** The same for a message of an effect, which may be internal. */
  readonly checkPeerMessage: (input: unknown) => Tagged
  /** A log item from its stored text. Throws when it is not one. */
  readonly decodeItem: (text: string) => Item
  /** The types of the replies, by the tag of the message; it has no value. */
  readonly "~replies"?: Replies
  /** The type of the internal messages; it has no value. */
  readonly "~internal"?: Internal
}

/** The address of one actor, with its protocol: `counter("visits")`. */
export interface ActorRef<
  Message extends Tagged,
  Replies,
  Item = unknown,
  Internal extends Tagged = Tagged
> extends Address {
  readonly protocol: ActorProtocol<Message, Replies, Item, Internal>
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

/** {@link Ask} for effects of actors, which may send internal messages too. */
export interface PeerAsk extends Ask {
  <
    Message extends Tagged,
    Replies,
    Internal extends Tagged,
    const Tag extends Internal["_tag"] & keyof Replies
  >(
    to: ActorRef<Message, Replies, unknown, Internal>,
    message: MessageOf<Internal, Tag>
  ): Promise<Replies[Tag]>
}
