/** The session bound to the runtime. */
import { Effect } from "effect"
import type { Behavior, Tagged } from "../../runtime/index.ts"
import { codecsOf } from "../schemas.ts"
import { sessionTable } from "./decide.ts"
import { SessionMessage, type SessionReply, SessionState } from "./protocol.ts"

export const sessionKind = "session"

/** The behavior of sessions; an address's id is chosen at random. */
export const session: Behavior<SessionState, SessionMessage, SessionReply, Tagged> = {
  kind: sessionKind,
  initial: { _tag: "Absent" },
  table: sessionTable,
  ...codecsOf(SessionState, SessionMessage),
  perform: () => Effect.void
}
