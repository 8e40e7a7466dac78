/**
 * Whether an account has not refused failure reports, as far as a node knows. Without it,
 * each attempt that fails would cost its account an ask, and its own actor another commit.
 */
import { Clock, Effect } from "effect"
import { LRUCache } from "lru-cache"
import { isRefusal, type Peers } from "../../runtime/index.ts"
import { reportsLookupFreshMs, reportsLookupsMax } from "../limits.ts"
import { describeReports } from "./deposit.ts"

interface Lookup {
  readonly mayReport: boolean
  /** Until when it counts, ms since the epoch. */
  readonly untilMs: number
}

/** The lookups of one node. */
export class ReportsLookup {
  private readonly known = new LRUCache<string, Lookup>({ max: reportsLookupsMax })

  /**
   * Whether a failure is to be reported to the account. A new choice counts after
   * {@link reportsLookupFreshMs} at the latest. True if the account does not answer: a report that
   * is in vain is dropped later, and one that was not stored would be lost.
   */
  mayReport(peers: Peers, account: string): Effect.Effect<boolean> {
    return Effect.flatMap(Clock.currentTimeMillis, (nowMs) => {
      const known = this.known.get(account)
      const untilMs = nowMs + reportsLookupFreshMs
      // The clock may have been set back.
      if (known !== undefined && known.untilMs > nowMs && known.untilMs <= untilMs) {
        return Effect.succeed(known.mayReport)
      }
      return describeReports(peers, account).pipe(
        Effect.map((described) => {
          if (isRefusal(described) && described.reason === "Busy") return true
          const mayReport = !isRefusal(described) && described._tag === "Described" &&
            (described.view.failureReports !== undefined ||
              described.view.reportsUndecided === true)
          this.known.set(account, { mayReport, untilMs })
          return mayReport
        }),
        Effect.catch(() => Effect.succeed(true))
      )
    })
  }
}
