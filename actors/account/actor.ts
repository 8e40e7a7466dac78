/** The account bound to the runtime. */
import { Effect } from "effect"
import type { Behaviour, Tagged } from "../../runtime/index.ts"
import { jsonRecord, strictMessage } from "../binding.ts"
import { accountTable } from "./decide.ts"
import { Message, State } from "./protocol.ts"
import type { Reply } from "./protocol.ts"

export const accountKind = "account"

/** The behaviour of accounts; an address's id is the account's name. */
export const account: Behaviour<State, Message, Reply, Tagged> = {
  kind: accountKind,
  initial: { _tag: "Absent" },
  table: accountTable,
  ...jsonRecord(State),
  decodeMessage: strictMessage(Message),
  wakeUp: { _tag: "WakeUp" },
  perform: () => Effect.void
}
