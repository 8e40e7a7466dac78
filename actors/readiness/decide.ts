/** The decisions of a readiness check. */
import { become, type BehaviorTable, stay } from "../../runtime/index.ts"
import type { ReadinessMessage, ReadinessReply, ReadinessState } from "./protocol.ts"

export const readinessTable: BehaviorTable<ReadinessState, ReadinessMessage, ReadinessReply> = {
  Checked: {
    Check: (state, _message, { head }) => {
      const decision = become<ReadinessState>(state).append("checked")
      if (head > 0) decision.removeItems(head)
      return decision.reply({ _tag: "Committed", n: head + 1 })
    },
    TimerFired: () => stay()
  }
}
