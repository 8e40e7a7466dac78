/** The connection to NATS, its requests, retries and read barriers. */
export { connection, Nats, type NatsApi, type NatsOptions, NatsTooOld } from "./connection.ts"
export { SharedCall } from "./read-barriers.ts"
export { isInbox, isNodeInbox, isNoResponders, nodeInboxPrefix, NoReply } from "./requests.ts"
export { ApiError, asStorageUnavailable, errorCodes, resendUntilAnswered, retryUntilDeadline,
  wait } from "./retries.ts"
export { isLarger, TurnWrites } from "./turn-writes.ts"
