/** The session bound to the runtime, and to the records of its listing. */
import { Effect } from "effect"
import type { Behavior, RecordsApi } from "../../runtime/index.ts"
import { removeListingEntry } from "../listing-entry.ts"
import { codecsOf } from "../schemas.ts"
import { sessionTable } from "./decide.ts"
import { accountSessionKey, accountSessionsTable, type SessionAction, sessionListing,
  SessionMessage, type SessionReply, SessionState } from "./protocol.ts"

export const sessionKind = "session"

/** The dependencies of sessions. */
export interface SessionDependencies {
  /** How long a session is kept after its last change, in ms. */
  readonly sessionRetentionMs: number
  /** Where sessions are listed. */
  readonly records: Pick<RecordsApi, "get" | "write">
}

/** The behavior of sessions; an address's id is chosen at random. */
export const session = (
  { records, sessionRetentionMs }: SessionDependencies
): Behavior<SessionState, SessionMessage, SessionReply, SessionAction> => ({
  kind: sessionKind,
  initial: { _tag: "Absent" },
  table: sessionTable(sessionRetentionMs),
  ...codecsOf(SessionState, SessionMessage),
  perform: ({ owner }, { id }) =>
    removeListingEntry(records, sessionListing, id).pipe(
      Effect.andThen(
        owner === undefined ? Effect.void : records.write([{
          table: accountSessionsTable,
          key: accountSessionKey(owner, id),
          value: null,
          markerExpires: true
        }])
      ),
      Effect.as<SessionMessage>({ _tag: "EntryRemoved" }),
      // The session is forgotten only after its entry.
      Effect.catch((failure) => Effect.logWarning("the entry of a session stays", failure))
    )
})
