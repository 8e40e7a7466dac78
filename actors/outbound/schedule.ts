/** The retry schedule: when the next attempt is due (protocol §1.3). */
import { Clock, Effect } from "effect"
import { unavailableRetryMs } from "../limits.ts"
import type { DeliveryFailure, DeliveryOutcome } from "./protocol.ts"
import { retryAfterMaxMs } from "./response.ts"

/** The wait before each attempt in ms, the first included; after the last one it has failed. */
export type Schedule = ReadonlyArray<number>

/** Each wait is lengthened or shortened by up to this fraction of it. */
export const jitterFraction = 0.2

/** The wait before the attempt after `made` ones, `random` in [0, 1); undefined: there is none. */
export const waitMs = (schedule: Schedule, made: number, random: number): number | undefined => {
  const wait = schedule[made]
  return wait === undefined ? undefined : Math.round(wait * (1 + jitterFraction * (2 * random - 1)))
}

/**
 * When the attempt after `made` ones is due, given the last failure; undefined when the schedule
 * is exhausted. A later Retry-After is honored, up to {@link retryAfterMaxMs}.
 */
export const dueAtMs = (
  schedule: Schedule,
  made: number,
  failure: DeliveryFailure,
  nowMs: number,
  random: number
): number | undefined => {
  const wait = waitMs(schedule, made, random)
  if (wait === undefined) return undefined
  const { retryAfterMs = 0 } = "retryAfterMs" in failure ? failure : {}
  return nowMs + Math.max(wait, Math.min(retryAfterMs, retryAfterMaxMs))
}

/** No attempt was made: memory, the store or another actor is unavailable. It is retried soon. */
export const deferredOutcome: Effect.Effect<DeliveryOutcome> = Effect.map(
  Clock.currentTimeMillis,
  (nowMs) => ({ _tag: "Deferred", untilMs: nowMs + unavailableRetryMs })
)
