/** The cabinet bound to the runtime. */
import { Effect } from "effect"
import type { Behaviour, Tagged } from "../../runtime/index.ts"
import { jsonRecord, strictMessage } from "../binding.ts"
import { cabinetTable } from "./decide.ts"
import { Message, State } from "./protocol.ts"
import type { Reply } from "./protocol.ts"

export const cabinetKind = "cabinet"

/** The behaviour of cabinets; an address's id is chosen at random. */
export const cabinet: Behaviour<State, Message, Reply, Tagged> = {
  kind: cabinetKind,
  initial: { _tag: "Absent" },
  table: cabinetTable,
  ...jsonRecord(State),
  decodeMessage: strictMessage(Message),
  wakeUp: { _tag: "WakeUp" },
  perform: () => Effect.void
}
