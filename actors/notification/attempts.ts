/** What an attempt makes of its recipient, and how the log tells it. Pure. */
import type { LogItem, Member } from "../../runtime/index.ts"
import type { Outcome } from "../delivery/protocol.ts"
import { dueAtMs } from "../delivery/schedule.ts"
import type { Schedule } from "../delivery/schedule.ts"
import { deferredMinMs, locationCharsMax, problemCharsMax } from "../limits.ts"
import { Recipient } from "./protocol.ts"
import type { Message, State, Status } from "./protocol.ts"
import { Schema } from "effect"

export type Queued = Member<State, "Queued">
type Attempted = Member<Message, "Attempted">

/** Whether nothing more is tried. */
export const hasEnded = ({ status }: Recipient): boolean =>
  status === "success" || status === "failed"

/** How a notification stands as a whole. */
export const statusOf = (recipients: ReadonlyArray<Recipient>): Status => {
  if (!recipients.every(hasEnded)) return "waiting"
  return recipients.some(({ status }) => status === "failed") ? "failed" : "sent"
}

/** Whether this attempt is the one that comes next. */
export const isNext = (recipient: Recipient | undefined, attempt: number): boolean =>
  recipient !== undefined && !hasEnded(recipient) && recipient.attempts + 1 === attempt

const codeOf = ({ code }: { readonly code?: number }): { readonly code?: number } =>
  code === undefined ? {} : { code }

const shortened = (problem: string): string => problem.slice(0, problemCharsMax)

/** What comes of an attempt that was made: the last one's answer takes the place of older ones. */
const counted = (
  schedule: Schedule,
  { attempts, to, tries }: Recipient,
  outcome: Exclude<Outcome, { readonly _tag: "Deferred" }>,
  random: number,
  nowMs: number
): Recipient => {
  const made = { to, attempts: attempts + 1, tries: tries + 1, lastAtMs: nowMs }
  switch (outcome._tag) {
    case "Delivered": {
      const { code, location = "" } = outcome
      const isKept = location !== "" && location.length <= locationCharsMax
      return { ...made, status: "success", code, ...isKept ? { location } : {} }
    }
    case "Refused": {
      const problem = shortened(outcome.problem)
      return { ...made, status: "failed", ...codeOf(outcome), problem }
    }
    case "Faulted": {
      const told = { ...codeOf(outcome), problem: shortened(outcome.problem) }
      const nextAtMs = dueAtMs(schedule, made.tries, outcome, nowMs, random)
      return nextAtMs === undefined
        ? { ...made, status: "failed", ...told }
        : { ...made, status: "retry", nextAtMs, ...told }
    }
  }
}

/** The recipient after an attempt; a deferred one was none, and comes again. */
export const afterAttempt = (
  schedule: Schedule,
  recipient: Recipient,
  { outcome, random }: Pick<Attempted, "outcome" | "random">,
  nowMs: number
): Recipient =>
  outcome._tag === "Deferred"
    ? { ...recipient, nextAtMs: Math.max(outcome.untilMs, nowMs + deferredMinMs) }
    : counted(schedule, recipient, outcome, random, nowMs)

/** One that has failed, to be tried again from the schedule's start. */
export const againFrom = (recipient: Recipient, nowMs: number): Recipient => ({
  ...recipient,
  status: "retry",
  tries: 0,
  nextAtMs: nowMs
})

/** A log item that tells how one recipient stands; to apply it twice is to apply it once. */
const Result = Schema.fromJsonString(
  Schema.Struct({ recipient: Schema.Number, version: Schema.Number, now: Recipient })
)
const decoded = Schema.decodeUnknownSync(Result)

export const encodeResult = (at: number, { recipients, version }: Queued): string =>
  JSON.stringify({ recipient: at, version, now: { ...recipients[at], to: "" } })

/** The state with what the log items tell that its record does not. */
export const withResults = (state: Queued, items: ReadonlyArray<LogItem>): Queued => {
  const later = items.filter(({ n }) => n > state.folded)
  if (later.length === 0) return state
  const recipients = [...state.recipients]
  let { version } = state
  for (const { value } of later) {
    const result = decoded(value)
    const before = recipients[result.recipient]
    if (before === undefined) throw new RangeError(`there is no recipient ${result.recipient}`)
    recipients[result.recipient] = { ...result.now, to: before.to }
    version = result.version
  }
  return { ...state, recipients, version }
}
