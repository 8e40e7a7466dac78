/** The cabinet bound to the runtime. */
import { Effect } from "effect"
import type { Behavior, Tagged } from "../../runtime/index.ts"
import { codecsOf } from "../schemas.ts"
import { cabinetTable } from "./decide.ts"
import { CabinetMessage, type CabinetReply, CabinetState } from "./protocol.ts"

export const cabinetKind = "cabinet"

/** The behavior of cabinets; an address's id is chosen at random. */
export const cabinet: Behavior<CabinetState, CabinetMessage, CabinetReply, Tagged> = {
  kind: cabinetKind,
  initial: { _tag: "Absent" },
  table: cabinetTable,
  ...codecsOf(CabinetState, CabinetMessage),
  perform: () => Effect.void
}
