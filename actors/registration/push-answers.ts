/** What follows from the answers to pushes, test events and verifications. Pure. */
import type { DecisionContext } from "../../runtime/index.ts"
import { failureReportsFormat, mayReportAgain, originOf } from "../failure-reports/index.ts"
import { unavailableRetryMs } from "../limits.ts"
import { type DeliveryFailure, type DeliveryOutcome, dueAtMs,
  type Schedule } from "../outbound/index.ts"
import { type Registered, type RegistrationForm, without } from "./protocol.ts"
import { advanced } from "./test-event.ts"

interface PushReceiver {
  readonly form: RegistrationForm
}

/** Whether the receiver wants no more. A push service also has 404 for it (RFC 8030 §7.3). */
export const isEnd = (
  { form }: PushReceiver,
  outcome: Exclude<DeliveryOutcome, { readonly _tag: "Delivered" }>
): boolean => {
  if (outcome._tag !== "PermanentFailure") return false
  const { code } = outcome
  return code === 410 || (form === "webpush" && code === 404)
}

/**
 * Whether a push service rejects every attempt, such as one with a key that the browser has not
 * subscribed with (403). An endpoint that is no push service, and was never verified, gets no more;
 * nor does one that redirects, which is not followed.
 */
export const isRejectedForGood = (
  { form }: PushReceiver,
  { _tag, code = 0 }: DeliveryFailure
): boolean => form === "webpush" && _tag === "PermanentFailure" && code >= 300

/** When to retry after a failure. After the end of the schedule its last wait repeats. */
export const retryAtMs = (
  schedule: Schedule,
  tries: number,
  failure: DeliveryFailure,
  nowMs: number,
  random: number
): number => {
  const made = Math.min(tries, schedule.length - 1)
  const dueMs = dueAtMs(schedule, made, failure, nowMs, random) ?? 0
  return Math.max(dueMs, nowMs + unavailableRetryMs)
}

/**
 * The suspended registration with the report of that to the owner of its mailbox, once a day. An
 * older node would not deposit it, so that there is none before all nodes know reports.
 */
export const withSuspensionReport = (
  state: Registered,
  { format, nowMs }: DecisionContext
): Registered => {
  if (format < failureReportsFormat || !mayReportAgain(state, nowMs)) return state
  const { callback, failingSinceMs = nowMs, problem = "they failed" } = state
  const since = new Date(failingSinceMs).toISOString()
  const description = `Pushes to ${originOf(callback)} are suspended: ${problem}, since ${since}.` +
    " Nothing is pushed there before the registration is resumed, or its subscriber renews it."
  return { ...state, failureReport: { atMs: nowMs, description } }
}

/** The state with the failure of an attempt. */
export const withFailure = (
  state: Registered,
  { code, problem }: DeliveryFailure,
  nowMs: number
): Registered => ({
  ...without(state, "code"),
  lastAtMs: nowMs,
  problem,
  ...code === undefined ? {} : { code }
})

/** The state after what was pushed up to an item. */
export const withCursor = (state: Registered, upTo: number): Registered => ({
  ...without(state, "replay"),
  ...advanced(state, upTo)
})
