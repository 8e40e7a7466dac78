/** Requests of the command line to a running service. */
export { type Cluster, linesOf, lookAt, type NodeLine, noticesOf } from "./cluster-view.ts"
export { followLoad, type LoadProgress, problemsOf, readRows, sendFile, type TableRow,
  tables } from "./customers.ts"
export { listMailbox, type MailboxNotification, oneNotification, openContent } from "./mailboxes.ts"
export { follow, type OutgoingNotification, type OutgoingRecipient, ownMailbox, publish,
  type PublishedContent, queue, unpublish } from "./outgoing.ts"
export { byPassword, byToken, decodeAs, failed, notUnderstood, pathOf, refusedBy, type RemoteAnswer,
  type RemoteService, request, unreachable } from "./remote.ts"
export { type StreamListener, watchMailbox } from "./stream.ts"
