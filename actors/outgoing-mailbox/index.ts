/** Outgoing mailboxes: which of their relays are paused (protocol §1.3). */
export { outgoingMailbox, type OutgoingMailboxDependencies } from "./actor.ts"
export { heldBy, NodePauses } from "./pauses.ts"
export { outgoingMailboxKind, type OutgoingMailboxMessage, type OutgoingMailboxReply,
  type Pauses } from "./protocol.ts"
