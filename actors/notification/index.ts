/** Outgoing notifications and their recipients (protocol §1.3). */
export { notification, type NotificationDependencies, notificationKind } from "./actor.ts"
export { decodeRelayAttempt, type RelayAttempt, type RelayAttemptFollowUp,
  relayAttemptsFormat } from "./attempt-log.ts"
export { normalRecipient, replaysFormat, statusOf } from "./attempts.ts"
export { fragmentOf } from "./decide.ts"
export { aboutOf, describedItem, followUpsFormat } from "./follow-ups.ts"
export { pausesFormat } from "./holds.ts"
export { NotificationMessage, type NotificationReply, type NotificationStatus,
  type NotificationView, RecipientState } from "./protocol.ts"
export type { HeldAttempt, RelayPauses } from "./relay.ts"
export { outgoingKeysTable, outgoingTable } from "./status-hints.ts"
