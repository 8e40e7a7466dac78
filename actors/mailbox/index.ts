/** Mailboxes and the notifications in them (protocol §1.2). */
export { askMailbox, mailbox, mailboxKind, mailboxOwnersTable, openForOwner,
  ownersEntry } from "./actor.ts"
export { formatCursor, numberMax, parseSince, type Since, startAfter } from "./cursor.ts"
export type { MailboxLimits } from "./decide.ts"
export { parseDuration } from "./duration.ts"
export { decodeItem, decodeRemoval, isRemoval, itemAtMs, localDeliveryIdRandom, notificationId,
  parseNotificationId, partChars, type StoredNotification } from "./log-item.ts"
export { configuredSecretFormat, firstStartRequestId, lostWebhookSecret, MailboxMessage,
  MailboxReader, type MailboxReply, type MailboxView, OwnerSettings, type Removal, reportsRequestId,
  type WebhookTemplates } from "./protocol.ts"
export { covers } from "./ranges.ts"
export { backgroundTaskKind, idempotencyKind, registrationKind } from "./signals.ts"
