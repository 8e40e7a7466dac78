/** The registry of kinds: every behavior of the service, with its dependencies. */
import type { AnyBehavior, BlobsApi, RecordsApi } from "../runtime/index.ts"
import { account } from "./account/index.ts"
import { backgroundTask, type Documents } from "./background-task/index.ts"
import { cabinet } from "./cabinet/index.ts"
import { content } from "./content/index.ts"
import { idempotency } from "./idempotency/index.ts"
import { notificationsMaxDefault } from "./limits.ts"
import type { Links } from "./links.ts"
import { mailbox, type MailboxLimits } from "./mailbox/index.ts"
import { notification, type NotificationDependencies } from "./notification/index.ts"
import type { Outbound, Schedule } from "./outbound/index.ts"
import { registration } from "./registration/index.ts"
import { session } from "./session/index.ts"
import { throttle } from "./throttle/index.ts"

/** What the behaviors need from outside. */
export interface Dependencies {
  /** Where the bytes of content are. */
  readonly blobs: Pick<BlobsApi, "put" | "open" | "remove">
  readonly records: Pick<RecordsApi, "write" | "get">
  /** Requests to other services. */
  readonly outbound: Outbound
  readonly links: Links
  readonly documents: Documents & NotificationDependencies["documents"]
  /** The wait before each attempt at another service. */
  readonly schedule: Schedule
  /** How long an outgoing notification stays after all its recipients have ended. */
  readonly retentionMs: number
  /** Blobs that are stored and not yet referenced by their content. */
  readonly arriving: Set<string>
  /** In [0, 1): for jitter. */
  readonly random: () => number
  /** The operator's limits; what is left out has its default. */
  readonly limits?: Partial<MailboxLimits>
}

/** Every behavior of the service. */
export const behaviors = (deps: Dependencies): ReadonlyArray<AnyBehavior> => [
  account(deps.records),
  backgroundTask(deps),
  cabinet,
  content(deps.blobs),
  idempotency,
  mailbox({ notificationsMax: notificationsMaxDefault, ...deps.limits }),
  notification(deps),
  registration(deps),
  session,
  throttle
]
export { accountKind } from "./account/index.ts"
export { cabinetKind } from "./cabinet/index.ts"
export { contentKind } from "./content/index.ts"
export { idempotencyKind } from "./idempotency/index.ts"
export { answerCharsMax, cabinetMailboxesMax, receiptsMax, retrievedPerDecisionMax,
  wrongAttemptsWindowMs } from "./limits.ts"
export { linksUnder } from "./links.ts"
export { mailboxKind, registrationKind } from "./mailbox/index.ts"
export { notificationKind } from "./notification/index.ts"
export type { Reason } from "./refusals.ts"
export { sameHash } from "./secret-hash.ts"
export { bridge, scriptProgress, sessionKind } from "./session/index.ts"
export { throttleKind } from "./throttle/index.ts"
