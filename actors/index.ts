/** The registry of kinds: every behavior of the service, with its dependencies. */
import type { AnyBehavior } from "../runtime/index.ts"
import { account, type OwnedStores } from "./account/index.ts"
import { audit, type AuditDependencies } from "./audit/index.ts"
import { backgroundTask, type BackgroundTaskDependencies } from "./background-task/index.ts"
import { cabinet } from "./cabinet/index.ts"
import { content, type ContentDependencies } from "./content/index.ts"
import { idempotency } from "./idempotency/index.ts"
import { mailboxAnonymousBytesDefault, notificationsMaxDefault } from "./limits.ts"
import { mailbox, type MailboxLimits } from "./mailbox/index.ts"
import { notification, type NotificationDependencies } from "./notification/index.ts"
import { NodePauses, outgoingMailbox,
  type OutgoingMailboxDependencies } from "./outgoing-mailbox/index.ts"
import { readiness } from "./readiness/index.ts"
import { registration, type RegistrationDependencies } from "./registration/index.ts"
import { session, type SessionDependencies } from "./session/index.ts"
import { throttle } from "./throttle/index.ts"

/** The dependencies of all behaviors. */
export type Dependencies =
  & OwnedStores
  & AuditDependencies
  & BackgroundTaskDependencies
  & ContentDependencies
  & NotificationDependencies
  & OutgoingMailboxDependencies
  & RegistrationDependencies
  & SessionDependencies
  & {
    /** The operator's limits; a missing one has its default. */
    readonly limits?: Partial<MailboxLimits>
  }

/**
 * The newest format of the behaviors' states, log items and messages; see `runtime/actor`. With
 * format 2 came failure reports, follow-ups of outgoing notifications, and test events of
 * registrations; with format 3 came attempts, pauses and replays of relays,
 * and checks of signatures.
 */
export const serviceFormat = 3

/** Every behavior of the service, for one node. */
export const behaviors = (
  deps: Dependencies,
  pauses = new NodePauses()
): ReadonlyArray<AnyBehavior> => [
  account(deps),
  audit(deps),
  backgroundTask(deps),
  cabinet,
  content(deps),
  idempotency,
  mailbox({
    notificationsMax: notificationsMaxDefault,
    anonymousBytesMax: mailboxAnonymousBytesDefault,
    ...deps.limits
  }),
  notification({ ...deps, pauses }),
  outgoingMailbox(deps, pauses),
  readiness,
  registration(deps),
  session(deps),
  throttle
]
export { accountKind, goneQueries, queriesTable, queryOwnersTable } from "./account/index.ts"
export { auditId, auditKind } from "./audit/index.ts"
export { BackgroundTaskState, type CachedContent, cachedTable,
  DroppedRequests } from "./background-task/index.ts"
export { type Block, type BlockedBy, blockedText, decodeBlock, findBlock, hostsOf,
  normalHost } from "./blocks.ts"
export { cabinetKind } from "./cabinet/index.ts"
export { contentKind } from "./content/index.ts"
export { failureReportsFormat, openReportsMailbox,
  reportsMailboxName } from "./failure-reports/index.ts"
export { type Keyring, messagePasswordOf, newKey, parseKeys, type SealedPlace, sealingKeyId,
  signingSecretOf } from "./keyring.ts"
export { accountTokensMax, answerCharsMax, auditAccountCharsMax, auditDetailCharsMax,
  auditTargetCharsMax, blockReasonCharsMax, blockValueCharsMax, browserSessionLifetimeMs,
  cabinetMailboxesMax, contentOverheadBytes, followUpsMax, idempotencyRetentionMs, mailboxBlocksMax,
  mailboxTestsPerMinuteMax, passwordCheckMs, passwordTurnMs, passwordWaitMs, pausedOriginsMax,
  pushItemsMax, receiptDescriptionCharsMax, receiptsMax, replayedRecipientsMax, replaysPerHourMax,
  reservationMs, retrievedPerDecisionMax, testsPerMinuteMax,
  wrongAttemptsWindowMs } from "./limits.ts"
export { type Links, linksUnder } from "./links.ts"
export { type ListingTables, removeListingEntry } from "./listing-entry.ts"
export { backgroundTaskKind, idempotencyKind, lostWebhookSecret, mailboxKind,
  registrationKind } from "./mailbox/index.ts"
export { followUpsFormat, notificationKind, pausesFormat, relayAttemptsFormat,
  replaysFormat } from "./notification/index.ts"
export { hubSignature, notAllowed, type OutboundService, webhookHeaders } from "./outbound/index.ts"
export { heldBy, NodePauses, outgoingMailboxKind } from "./outgoing-mailbox/index.ts"
export { parseUrl } from "./parse-url.ts"
export { makeTurn, readinessKind } from "./readiness/index.ts"
export { cursorOf, cursorTimeDigits, cursorTimeMaxMs, keyTimeDigits,
  timeInKey } from "./record-keys.ts"
export type { Reason } from "./refusals.ts"
export { readSecretsFormat, replayEndsFormat, testEventsFormat,
  Vapid } from "./registration/index.ts"
export { fragmentStart, openItems, sealedParts, type SealPassword, sealPasswordFor, withoutPassword,
  withSealedPassword } from "./sealed-fragment.ts"
export { sameHash, sha256 } from "./secret-hash.ts"
export { bridge, scriptProgress, sessionKind } from "./session/index.ts"
export { streamSafe } from "./text/index.ts"
export { throttleKind } from "./throttle/index.ts"
export { addToTotals, contentListingTable, everyoneKey, networkKey, networksTable, ownerKey,
  type OwnerUse, parseUsageEntry, type QuotaExceeded, reservationsTable, Usage, type UsageEntry,
  UsageLedger, type UsageLimits, usageTable, type UsageTotal,
  usageTotalsTable } from "./usage/index.ts"
