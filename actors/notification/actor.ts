/** The outgoing notification bound to the runtime. */
import { Effect } from "effect"
import type { Address, Behavior, Peers, RecordsApi } from "../../runtime/index.ts"
import { reportFailure } from "../failure-reports/index.ts"
import { recipientItemsMax } from "../limits.ts"
import type { Schedule } from "../outbound/index.ts"
import { codecsOf } from "../schemas.ts"
import { bytesOfQueued, withRecipients } from "./attempts.ts"
import { notificationTable } from "./decide.ts"
import { type NotificationAction, NotificationMessage, type NotificationReply,
  NotificationState } from "./protocol.ts"
import { RelayResources } from "./relay-resources.ts"
import { confirmHold, makeAttempt, type RelayDependencies } from "./relay.ts"
import { StatusHints } from "./status-hints.ts"

export const notificationKind = "notification"

/** The dependencies of outgoing notifications. */
export interface NotificationDependencies extends RelayDependencies {
  readonly schedule: Schedule
  /** How long a notification is kept after all its recipients have ended, in ms. */
  readonly retentionMs: number
  /** Where its outgoing mailbox is listed. */
  readonly records: Pick<RecordsApi, "write">
}

const codecs = codecsOf(NotificationState, NotificationMessage)

/** The state without volatile parts, and without recipients that are log items. */
const stored = (state: NotificationState): NotificationState => {
  if (state._tag !== "Queued") return state
  const { failureReportUntilMs: _reporting, items: _items, running: _running, ...kept } = state
  return kept.listed === undefined ? kept : { ...kept, recipients: [] }
}

/** Reports a failure to the account that has sent the notification. */
const report = (
  { links, records }: NotificationDependencies,
  self: Address,
  peers: Peers,
  { account, ...action }: Extract<NotificationAction, { readonly _tag: "ReportFailure" }>
): Effect.Effect<NotificationMessage | void> =>
  reportFailure(peers, {
    actorId: self.id,
    action,
    cause: "outgoing",
    account: Effect.succeed(account),
    url: links.outgoing(account, self.id),
    records
  })

/** The behavior of outgoing notifications; an address's id is chosen at random. */
export const notification = (
  deps: NotificationDependencies
): Behavior<NotificationState, NotificationMessage, NotificationReply, NotificationAction> => {
  const statusHints = new StatusHints(deps.records)
  const resources = new RelayResources()
  return {
    kind: notificationKind,
    initial: { _tag: "Absent" },
    table: notificationTable(deps.schedule, deps.retentionMs),
    ...codecs,
    encode: (state) => codecs.encode(stored(state)),
    recall: {
      items: recipientItemsMax,
      // Few recipients are in the record, so that documents and attempts need not be read.
      firstOf: (state) =>
        state._tag === "Queued" && state.listed !== undefined ? state.cleaned + 1 : Infinity,
      keyOf: () => undefined,
      restore: (state, items) => state._tag === "Queued" ? withRecipients(state, items) : state
    },
    bytesOf: (state) => state._tag === "Queued" ? bytesOfQueued(state) : 0,
    perform: (action, self, peers) => {
      if (action._tag === "Attempt") return makeAttempt(deps, resources, self, peers, action)
      if (action._tag === "ReportFailure") return report(deps, self, peers, action)
      if (action._tag === "ConfirmHold") {
        // A release finds in the listing what waits: not what it shows as sent.
        return Effect.andThen(statusHints.written(), confirmHold(deps, peers, action))
      }
      if (action._tag === "MarkRevised") {
        resources.running.markRevised(self.id, action.edition)
        return Effect.void
      }
      // It is removed: its waiting attempts must not start.
      if (action.status === null) resources.running.markRemoved(self.id)
      return statusHints.add(action.listingKey, action.status)
    }
  }
}
