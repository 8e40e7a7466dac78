/** The session bound to the runtime. */
import { Effect } from "effect"
import type { Behaviour, Tagged } from "../../runtime/index.ts"
import { jsonRecord, strictMessage } from "../binding.ts"
import { sessionTable } from "./decide.ts"
import { Message, State } from "./protocol.ts"
import type { Reply } from "./protocol.ts"

export const sessionKind = "session"

/** The behaviour of sessions; an address's id is chosen at random. */
export const session: Behaviour<State, Message, Reply, Tagged> = {
  kind: sessionKind,
  initial: { _tag: "Absent" },
  table: sessionTable,
  ...jsonRecord(State),
  decodeMessage: strictMessage(Message),
  wakeUp: { _tag: "WakeUp" },
  perform: () => Effect.void
}
