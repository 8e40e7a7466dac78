/** The count of wrong passwords bound to the runtime. */
import { Effect } from "effect"
import type { Behavior, Tagged } from "../../runtime/index.ts"
import { codecsOf } from "../schemas.ts"
import { throttleTable } from "./decide.ts"
import { ThrottleMessage, type ThrottleReply, ThrottleState } from "./protocol.ts"

export const throttleKind = "throttle"

/** The counter of wrong attempts of one client address, or for one account. */
export const throttle: Behavior<ThrottleState, ThrottleMessage, ThrottleReply, Tagged> = {
  kind: throttleKind,
  initial: { _tag: "Counting", count: 0, fromMs: 0, tried: [] },
  table: throttleTable,
  ...codecsOf(ThrottleState, ThrottleMessage),
  perform: () => Effect.void
}
