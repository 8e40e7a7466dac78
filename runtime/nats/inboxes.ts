/** How the inboxes of nodes begin, by which their asks are told from those of other clients. */
import type { Msg } from "@nats-io/transport-node"

export const inboxes = "_INBOX.restante"

/** Whether a message with this reply subject was sent by a node. */
export const isOwnInbox = (reply: string | undefined): boolean =>
  reply?.startsWith(`${inboxes}.`) === true

/** 503 without content: the server says that nobody has subscribed. */
export const isNoResponders = ({ data, headers }: Msg): boolean =>
  data.length === 0 && headers?.code === 503
