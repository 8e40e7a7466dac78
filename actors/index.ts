/** The registry of kinds: every behaviour of the service, given what their effects need. */
import type { AnyBehavior, BlobsApi, RecordsApi } from "../runtime/index.ts"
import { account } from "./account/actor.ts"
import { cabinet } from "./cabinet/actor.ts"
import { content } from "./content/actor.ts"
import type { Outbound } from "./delivery/protocol.ts"
import type { Schedule } from "./delivery/schedule.ts"
import { backgroundTask } from "./errand/actor.ts"
import type { Documents } from "./errand/protocol.ts"
import { idempotency } from "./idempotency/actor.ts"
import { notificationsMaxDefault } from "./limits.ts"
import type { Links } from "./links.ts"
import { mailbox } from "./mailbox/actor.ts"
import type { MailboxLimits } from "./mailbox/decide.ts"
import { notification, type NotificationDependencies } from "./notification/actor.ts"
import { registration } from "./registration/actor.ts"
import { session } from "./session/actor.ts"
import { throttle } from "./throttle/actor.ts"

/** What the behaviours need from outside. */
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
  readonly keepMs: number
  /** Blobs that are stored and not yet shown by their content. */
  readonly arriving: Set<string>
  /** In [0, 1): for jitter. */
  readonly random: () => number
  /** The operator's limits; what is left out has its default. */
  readonly limits?: Partial<MailboxLimits>
}

/** Every behaviour of the service. */
export const behaviours = (deps: Dependencies): ReadonlyArray<AnyBehavior> => [
  account(deps.records),
  cabinet,
  content(deps.blobs),
  backgroundTask(deps),
  idempotency,
  mailbox({ notificationsMax: notificationsMaxDefault, ...deps.limits }),
  notification(deps),
  registration(deps),
  session,
  throttle
]

export { accountKind } from "./account/actor.ts"
export { cabinetKind } from "./cabinet/actor.ts"
export { contentKind } from "./content/actor.ts"
export { idempotencyKind } from "./idempotency/actor.ts"
export { linksUnder } from "./links.ts"
export { mailboxKind } from "./mailbox/actor.ts"
export { notificationKind } from "./notification/actor.ts"
export type { Reason } from "./reasons.ts"
export { registrationKind } from "./registration/actor.ts"
export { sessionKind } from "./session/actor.ts"
export { bridge } from "./session/bridge.ts"
export { scriptProgress } from "./session/script.ts"
export { throttleKind } from "./throttle/actor.ts"
