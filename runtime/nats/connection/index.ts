/** The connection to NATS, its requests, and read barriers. */
export { connection, Nats, type NatsOptions, NatsTooOld } from "./connection.ts"
export { answersOf, ApiError, expecting, gather, headerIn, inboxes, isFull, isMoved, isNoResponders,
  isOwnInbox, type NatsApi, persist, rawHeaders, resendUntilAnswered, type StoredMessage,
  type StreamMessage, type StreamReplies, unavailable, wait, write,
  type Written } from "./requests.ts"
