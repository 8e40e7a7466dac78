/** The count of wrong passwords bound to the runtime. */
import { Effect } from "effect"
import type { Behaviour, Tagged } from "../../runtime/index.ts"
import { jsonRecord, strictMessage } from "../binding.ts"
import { throttleTable } from "./decide.ts"
import { Message, State } from "./protocol.ts"
import type { Reply } from "./protocol.ts"

export const throttleKind = "throttle"

/** The behaviour of client addresses that try passwords and tokens, and of accounts tried. */
export const throttle: Behaviour<State, Message, Reply, Tagged> = {
  kind: throttleKind,
  initial: { _tag: "Counting", count: 0, fromMs: 0, tried: [] },
  table: throttleTable,
  ...jsonRecord(State),
  decodeMessage: strictMessage(Message),
  wakeUp: { _tag: "WakeUp" },
  perform: () => Effect.void
}
