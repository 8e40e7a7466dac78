/** What a registration makes of the answers that it gets: of callbacks, of its mailbox. Pure. */
import { stay } from "../../runtime/index.ts"
import type { DeliveryOutcome } from "../delivery/protocol.ts"
import { dueAtMs } from "../delivery/schedule.ts"
import type { Schedule } from "../delivery/schedule.ts"
import { awayRetryMs, deferredMinMs, failingMaxMs, registeringMs } from "../limits.ts"
import { verificationsMax } from "../limits.ts"
import { drop, end, goOn, type Intent, type RegistrationDecision } from "./course.ts"
import type { Registered, Registrations } from "./course.ts"

type OutcomeRow = Registrations["Registered"]
type Failed = Extract<DeliveryOutcome, { readonly _tag: "Refused" | "Faulted" }>

const mailboxIsGone = "the mailbox has been removed"

/** The state after an attempt that failed. */
const failing = (state: Registered, { code, problem }: Failed, nowMs: number): Registered => ({
  ...drop(state, "code"),
  lastAtMs: nowMs,
  problem,
  ...code === undefined ? {} : { code }
})

/** When an attempt that was not made is. */
const deferredUntilMs = (
  { untilMs }: Extract<DeliveryOutcome, { readonly _tag: "Deferred" }>,
  nowMs: number
): number => Math.max(untilMs, nowMs + deferredMinMs)

/** When it is tried again; the schedule's last wait goes on. */
const retryAtMs = (
  schedule: Schedule,
  tries: number,
  { problem, ...failed }: Failed,
  nowMs: number,
  random: number
): number => {
  const fault = failed._tag === "Faulted"
    ? { ...failed, problem }
    : { _tag: "Faulted", problem } as const
  const made = Math.min(tries, schedule.length - 1)
  const dueMs = dueAtMs(schedule, made, fault, nowMs, random) ?? 0
  return Math.max(dueMs, nowMs + awayRetryMs)
}

/** The callback has echoed: it wants what was asked for it. */
const echoed = (
  state: Registered,
  intent: Intent,
  code: number,
  nowMs: number
): RegistrationDecision => {
  if (intent.mode === "unsubscribe") return end(state, nowMs)
  const { form } = state
  const { leaseSeconds, secret } = intent
  const next: Registered = {
    ...drop(state, "intent", "leaseUntilMs", "failingSinceMs", "nextAtMs", "problem"),
    status: "active",
    tries: 0,
    lastAtMs: nowMs,
    code,
    ...form === "native" ? {} : { secrets: secret === undefined ? [] : [{ value: secret }] },
    ...leaseSeconds === 0 ? {} : { leaseUntilMs: nowMs + leaseSeconds * 1000 }
  }
  return goOn(next, nowMs, { look: true, changed: true })
}

/** The callback has answered to a challenge. */
export const verified =
  (schedule: Schedule): OutcomeRow["Verified"] => (state, message, { nowMs }) => {
    const { challenge, outcome, random } = message
    const { intent } = state
    if (intent === undefined || intent.challenge !== challenge) return stay()
    const free = drop(state, "verifyingUntilMs")
    const on = (next: Registered): RegistrationDecision =>
      goOn(next, nowMs, { look: false, changed: true })
    if (outcome._tag === "Delivered") return echoed(free, intent, outcome.code, nowMs)
    if (outcome._tag === "Deferred") {
      return on({ ...free, intent: { ...intent, nextAtMs: deferredUntilMs(outcome, nowMs) } })
    }
    const tries = intent.tries + 1
    const failed = failing(free, outcome, nowMs)
    if (outcome._tag === "Faulted" && tries < verificationsMax) {
      const nextAtMs = retryAtMs(schedule, tries, outcome, nowMs, random)
      return on({ ...failed, intent: { ...intent, tries, nextAtMs } })
    }
    // What holds goes on without it; an unverified one keeps what it wished, to be asked anew.
    if (state.status !== "unverified") return on(drop(failed, "intent"))
    const { nextAtMs: _, ...wish } = intent
    return on({ ...failed, intent: { ...wish, mode: "subscribe", tries } })
  }

/** A look has ended; or a push met its mailbox gone. */
export const found: OutcomeRow["Found"] = (state, message, { nowMs }) => {
  const { from, mailboxGone, more, untilMs, upTo } = message
  const { again = false, underWay } = state
  if (underWay === undefined) return stay()
  if (mailboxGone && state.status !== "active") return end(state, nowMs, mailboxIsGone)
  if (mailboxGone) {
    const last = drop(state, "underWay", "again", "nextAtMs")
    const next: Registered = { ...last, mailboxGone, pushing: state.cursor, tries: 0 }
    return goOn(next, nowMs, { look: false, changed: true })
  }
  // One from before the last push may have ended in the same millisecond.
  const isCurrent = underWay.what === "look" && underWay.untilMs === untilMs &&
    from === state.cursor
  if (!isCurrent) return stay()
  const free = drop(state, "underWay")
  if (upTo <= from || state.status !== "active") {
    return goOn(free, nowMs, { look: again, changed: false })
  }
  return goOn({ ...free, pushing: upTo }, nowMs, { look: again || more, changed: true })
}

/** A push was acknowledged. */
const acknowledged = (
  state: Registered,
  upTo: number,
  code: number,
  nowMs: number
): RegistrationDecision => {
  if (state.mailboxGone) return end(state, nowMs, mailboxIsGone)
  // Without what was under way it is not known what else came meanwhile.
  const look = state.again === true || state.underWay === undefined
  const next: Registered = {
    ...drop(state, "pushing", "underWay", "failingSinceMs", "nextAtMs", "problem"),
    cursor: upTo,
    tries: 0,
    lastAtMs: nowMs,
    code
  }
  return goOn(next, nowMs, { look, changed: true })
}

/** The callback has answered to a push. */
export const pushed = (schedule: Schedule): OutcomeRow["Pushed"] => (state, message, { nowMs }) => {
  const { callback, outcome, random, upTo } = message
  const isCurrent = state.pushing === upTo && state.callback === callback
  if (!isCurrent || state.status !== "active") return stay()
  if (outcome._tag === "Delivered") return acknowledged(state, upTo, outcome.code, nowMs)
  const free = drop(state, "underWay")
  const on = (next: Registered): RegistrationDecision =>
    goOn(next, nowMs, { look: false, changed: true })
  if (outcome._tag === "Deferred") return on({ ...free, nextAtMs: deferredUntilMs(outcome, nowMs) })
  if (outcome._tag === "Refused" && (state.mailboxGone || outcome.code === 410)) {
    return end(state, nowMs, state.mailboxGone ? mailboxIsGone : undefined)
  }
  const tries = state.tries + 1
  const failingSinceMs = state.failingSinceMs ?? nowMs
  const failed = { ...failing(free, outcome, nowMs), tries, failingSinceMs }
  if (nowMs - failingSinceMs < failingMaxMs) {
    return on({ ...failed, nextAtMs: retryAtMs(schedule, tries, outcome, nowMs, random) })
  }
  if (state.mailboxGone) return end(state, nowMs, mailboxIsGone)
  return on({ ...drop(failed, "nextAtMs", "again"), status: "suspended" })
}

/** Goes on a little later: it could not look or push. */
const later = (state: Registered, nowMs: number): RegistrationDecision => {
  const laterMs = nowMs + awayRetryMs
  const free = drop(state, "underWay")
  const isPushing = state.pushing !== undefined
  const next = isPushing ? { ...free, nextAtMs: laterMs } : free
  return goOn(next, nowMs, { look: false, changed: isPushing, laterMs })
}

export const away: OutcomeRow["Away"] = (state, { untilMs }, { nowMs }) =>
  state.underWay?.untilMs === untilMs ? later(state, nowMs) : stay()

/** The mailbox does not know it: not yet, since it is made first, or no more. */
export const detached: OutcomeRow["Detached"] = (state, { untilMs }, { nowMs }) => {
  if (state.underWay?.untilMs !== untilMs) return stay()
  return nowMs - state.createdAtMs < registeringMs ? later(state, nowMs) : end(state, nowMs)
}
