/** The registry of kinds: every behaviour of the service, given what their effects need. */
import type { AnyBehaviour, BlobsApi } from "../runtime/index.ts"
import { account } from "./account/actor.ts"
import { content } from "./content/actor.ts"
import { idempotency } from "./idempotency/actor.ts"
import { notificationsMaxDefault } from "./limits.ts"
import { mailbox } from "./mailbox/actor.ts"
import type { MailboxLimits } from "./mailbox/decide.ts"
import { session } from "./session/actor.ts"

/** What the behaviours need from outside. */
export interface Dependencies {
  /** Where the bytes of content are; bodies that were replaced are removed from it. */
  readonly blobs: Pick<BlobsApi, "remove">
  /** The operator's limits; what is left out has its default. */
  readonly limits?: Partial<MailboxLimits>
}

/** Every behaviour of the service. */
export const behaviours = (
  { blobs, limits = {} }: Dependencies
): ReadonlyArray<AnyBehaviour> => [
  account,
  content(blobs),
  idempotency,
  mailbox({ notificationsMax: notificationsMaxDefault, ...limits }),
  session
]

export { accountKind } from "./account/actor.ts"
export { contentKind } from "./content/actor.ts"
export { idempotencyKind } from "./idempotency/actor.ts"
export { mailboxKind } from "./mailbox/actor.ts"
export type { Reason } from "./reasons.ts"
export { sessionKind } from "./session/actor.ts"
export { bridge } from "./session/bridge.ts"
export { courseOf } from "./session/script.ts"
