/** The outgoing mailbox bound to the runtime: to the listing of its notifications. */
import { Clock, Effect } from "effect"
import type { Behavior, RecordsApi } from "../../runtime/index.ts"
import { codecsOf } from "../schemas.ts"
import { outgoingMailboxTable } from "./decide.ts"
import type { NodePauses } from "./pauses.ts"
import { type OutgoingMailboxAction, outgoingMailboxKind, OutgoingMailboxMessage,
  type OutgoingMailboxReply, OutgoingMailboxState } from "./protocol.ts"
import { releaseListed } from "./release.ts"

/** The dependencies of outgoing mailboxes. */
export interface OutgoingMailboxDependencies {
  /** Where their notifications are listed. */
  readonly records: Pick<RecordsApi, "range">
}

/** The behavior of outgoing mailboxes; an address's id is the name of the account. */
export const outgoingMailbox = (
  { records }: OutgoingMailboxDependencies,
  pauses: NodePauses
): Behavior<
  OutgoingMailboxState,
  OutgoingMailboxMessage,
  OutgoingMailboxReply,
  OutgoingMailboxAction
> => ({
  kind: outgoingMailboxKind,
  initial: { _tag: "Absent" },
  table: outgoingMailboxTable,
  ...codecsOf(OutgoingMailboxState, OutgoingMailboxMessage),
  perform: (action, { id: account }, peers) => {
    if (action._tag === "NotePauses") {
      return Effect.map(
        Clock.currentTimeMillis,
        (nowMs) => pauses.note(account, action.pauses, nowMs)
      )
    }
    // The deferred timer repeats a page that failed.
    return Effect.catch(
      releaseListed(records, peers, account, action),
      (failure) => Effect.logWarning("what waited for a pause was not released", failure)
    )
  }
})
