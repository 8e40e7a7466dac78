/**
 * Answers that stay open for their client: event streams and long polls (protocol §7). A node has
 * a number of them for each client network, and for all together, since each takes memory.
 */
import { openAnswerRecheckMs, openAnswerRetryMs, openAnswersMax,
  openAnswersPerNetworkMax } from "../limits.ts"
import type { Clients } from "./client-address.ts"
import { NetworkPlaces, type PlaceLimits } from "./network-places.ts"

interface OpenAnswerLimits extends PlaceLimits {
  /** How long an answer stays open without a new check of its client. */
  readonly recheckMs: number
}

export class OpenAnswers extends NetworkPlaces {
  /** How long an answer stays open without a new check of its client. */
  readonly recheckMs: number

  constructor(clients: Clients, limits: Partial<OpenAnswerLimits> = {}) {
    super(
      clients,
      { totalMax: openAnswersMax, perNetworkMax: openAnswersPerNetworkMax, ...limits },
      {
        policy: "open-answers",
        taken: (count) => `${count} event streams and long polls open`,
        advice: `close one, or repeat the request in ${openAnswerRetryMs / 1000} s`,
        retryMs: openAnswerRetryMs
      }
    )
    this.recheckMs = limits.recheckMs ?? openAnswerRecheckMs
  }
}
