/** Sessions and their question scripts (protocol §2). */
export { session, type SessionDependencies, sessionKind } from "./actor.ts"
export { bridge } from "./bridge.ts"
export { accountSessionKey, accountSessionsTable, type RecordedAnswer, sessionListing,
  SessionMessage, type SessionReply, type SessionView } from "./protocol.ts"
export { scriptProgress } from "./script.ts"
