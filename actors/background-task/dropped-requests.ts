/** The requests of anonymous deposits that are never made, since there is no budget in time. */
import { Clock, Effect } from "effect"
import { droppedRequestsLogMs } from "../limits.ts"

/** Counts them, and logs the first one and the number once in a while. */
export class DroppedRequests {
  private dropped = 0
  private loggedMs = -Infinity

  /** All since the start of the node. */
  get total(): number {
    return this.dropped
  }

  note(): Effect.Effect<void> {
    return Effect.flatMap(Clock.currentTimeMillis, (nowMs) => {
      this.dropped += 1
      if (nowMs < this.loggedMs + droppedRequestsLogMs) return Effect.void
      this.loggedMs = nowMs
      return Effect.logWarning(
        `fetches or receipts of anonymous deposits were dropped: ${this.dropped} since the ` +
          "start. Their networks have no budget left: block those that flood."
      )
    })
  }
}
