/** The connection to NATS, its requests, and read barriers. */
export { connection, Nats, type NatsOptions, NatsTooOld } from "./connection.ts"
export { ApiError, asStorageUnavailable, collectMessages, expectSequence, headerIn, isFull,
  isNodeInbox, isNoResponders, isSequenceConflict, type NatsApi, nodeInboxPrefix, parseReplies,
  rawHeaders, resendUntilAnswered, retryUntilDeadline, type StoredMessage, type StreamMessage,
  type StreamReplies, wait, write, type WriteResult } from "./requests.ts"
