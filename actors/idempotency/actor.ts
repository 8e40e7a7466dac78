/** The memory of an idempotency key bound to the runtime. */
import { Effect } from "effect"
import type { Behaviour, Tagged } from "../../runtime/index.ts"
import { jsonRecord, strictMessage } from "../binding.ts"
import { idempotencyTable } from "./decide.ts"
import { Message, State } from "./protocol.ts"
import type { Reply } from "./protocol.ts"

export const idempotencyKind = "idempotency"

/** The behaviour of idempotency keys. */
export const idempotency: Behaviour<State, Message, Reply, Tagged> = {
  kind: idempotencyKind,
  initial: { _tag: "Absent" },
  table: idempotencyTable,
  ...jsonRecord(State),
  decodeMessage: strictMessage(Message),
  wakeUp: { _tag: "WakeUp" },
  perform: () => Effect.void
}
