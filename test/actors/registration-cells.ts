/** A registration and messages to it, for the tests of its table. */
import { expect } from "vitest"
import { failureReportsFormat } from "../../actors/failure-reports/report.ts"
import { registrationLeaseMs } from "../../actors/limits.ts"
import type { DeliveryOutcome } from "../../actors/outbound/protocol.ts"
import { registrationTable } from "../../actors/registration/decide.ts"
import type { RegistrationAction, RegistrationMessage, RegistrationReply,
  RegistrationState } from "../../actors/registration/protocol.ts"
import type { Variant } from "../../runtime/index.ts"
import { decider, effectsOf, nowMs } from "./cells.ts"

export type Registered = Variant<RegistrationState, "Registered">

export const schedule = [0, 5_000, 60_000]
export const table = registrationTable(schedule)
export const decide = decider<
  RegistrationState,
  RegistrationMessage,
  RegistrationReply,
  RegistrationAction
>(table)

export const callback = "http://example.org/hook"
export const leaseEndMs = nowMs + registrationLeaseMs
export const absent: RegistrationState = { _tag: "Absent" }
export const removed: Variant<RegistrationState, "Removed"> = {
  _tag: "Removed",
  removedAtMs: nowMs,
  version: 1
}
export const asked = { mode: "subscribe", challenge: "c1", leaseSeconds: 0, tries: 0 } as const
export const unverified: Registered = {
  _tag: "Registered",
  requestId: "r1",
  createdAtMs: nowMs,
  form: "native",
  callback,
  account: "alice",
  secrets: [{ value: "whsec_1" }],
  status: "unverified",
  version: 1,
  intent: { ...asked, nextAtMs: nowMs },
  cursor: 3,
  mailboxGone: false,
  tries: 0
}
export const verifying: Registered = { ...unverified, verifyingUntilMs: leaseEndMs }
export const { intent: _intent, ...withoutIntent } = unverified
export const active: Registered = { ...withoutIntent, status: "active" }
export const looking: Registered = { ...active, running: { kind: "check", untilMs: leaseEndMs } }
export const toPush: Registered = { ...active, pushing: 8 }
export const pushing: Registered = { ...toPush, running: { kind: "push", untilMs: leaseEndMs } }
export const suspended: Registered = {
  ...toPush,
  status: "suspended",
  tries: 30,
  failingSinceMs: 1
}
export const paused: Registered = { ...active, status: "paused" }
export const subscribed: Registered = { ...active, form: "websub", secrets: [{ value: "hub" }] }

export const create: Variant<RegistrationMessage, "Create"> = {
  _tag: "Create",
  requestId: "r1",
  form: "native",
  callback,
  account: "alice",
  secret: "whsec_1",
  leaseSeconds: 0,
  challenge: "c1",
  cursor: 3
}
export const hubCreate: Variant<RegistrationMessage, "Create"> = {
  ...create,
  requestId: "r2",
  form: "websub",
  secret: "hub2",
  leaseSeconds: 60,
  challenge: "c2",
  cursor: 9
}
export const unsubscribe: RegistrationMessage = { _tag: "Unsubscribe", challenge: "c3" }
export const describeIt: RegistrationMessage = { _tag: "Describe" }
export const readSecrets: RegistrationMessage = { _tag: "ReadSecrets" }
export const update: Variant<RegistrationMessage, "Update"> = { _tag: "Update", challenge: "c4" }
export const pause: Variant<RegistrationMessage, "Pause"> = { _tag: "Pause" }
export const rotate: Variant<RegistrationMessage, "Rotate"> = { _tag: "Rotate", secret: "whsec_2" }
export const testIt: Variant<RegistrationMessage, "Test"> = { _tag: "Test", id: "t1" }
export const remove: Variant<RegistrationMessage, "Delete"> = { _tag: "Delete" }
export const delivered: DeliveryOutcome = { _tag: "Delivered", code: 200 }
export const refused: DeliveryOutcome = {
  _tag: "PermanentFailure",
  code: 404,
  problem: "not found"
}
export const faulted: DeliveryOutcome = { _tag: "RetryableFailure", problem: "no answer in time" }
export const deferred: DeliveryOutcome = { _tag: "Deferred", untilMs: nowMs + 700 }
export const verified = (outcome: DeliveryOutcome, challenge = "c1"): RegistrationMessage => ({
  _tag: "Verified",
  challenge,
  outcome,
  random: 0.5
})
export const found = (
  upTo: number,
  more = false,
  mailboxGone = false
): Variant<RegistrationMessage, "Checked"> => ({
  _tag: "Checked",
  untilMs: leaseEndMs,
  from: 3,
  upTo,
  more,
  mailboxGone
})
export const pushed = (
  outcome: DeliveryOutcome,
  upTo = 8
): Variant<RegistrationMessage, "Pushed"> => ({
  _tag: "Pushed",
  callback,
  from: 3,
  upTo,
  outcome,
  random: 0.5
})
export const tested: Variant<RegistrationMessage, "Tested"> = {
  _tag: "Tested",
  id: "t1",
  outcome: { _tag: "Delivered", code: 204 },
  durationMs: 12
}
/** Every node knows failure reports. */
export const reporting = { format: failureReportsFormat }
export const addressed: RegistrationMessage = {
  _tag: "FailureReportAddressed",
  atMs: nowMs,
  to: { account: "alice", mailbox: "box" }
}
export const settled: Variant<RegistrationMessage, "FailureReportSettled"> = {
  _tag: "FailureReportSettled",
  atMs: nowMs
}
export const skipped: Variant<RegistrationMessage, "Skipped"> = {
  _tag: "Skipped",
  untilMs: leaseEndMs,
  from: 3,
  upTo: 8
}
export const detached: RegistrationMessage = { _tag: "Detached", untilMs: leaseEndMs }
export const revoked: RegistrationMessage = { _tag: "Revoked", secretsVersion: 1 }
export const away: RegistrationMessage = { _tag: "Unavailable", untilMs: leaseEndMs }
export const timerFired: RegistrationMessage = { _tag: "TimerFired" }

export const verify = {
  _tag: "Verify",
  callback,
  account: "alice",
  mode: "subscribe",
  challenge: "c1",
  leaseSeconds: 0
}
export const look: RegistrationAction = {
  _tag: "CheckMailbox",
  from: 3,
  readsChanges: true,
  untilMs: leaseEndMs
}
export const push: RegistrationAction = {
  _tag: "Push",
  form: "native",
  callback,
  account: "alice",
  secrets: ["whsec_1"],
  from: 3,
  upTo: 8,
  mailboxGone: false,
  untilMs: leaseEndMs
}
export const detach: RegistrationAction = { _tag: "Detach" }

export type Decided = ReturnType<typeof decide>

const expectRemoval = (
  { actions, deferUntilMs, nextState, timerAtMs }: Decided,
  state: RegistrationState,
  more: ReadonlyArray<RegistrationAction>
): void => {
  expect(nextState).toEqual(state)
  expect(actions).toEqual([detach, ...more])
  expect(timerAtMs).toBe(nowMs)
  expect(deferUntilMs).toBe(leaseEndMs)
}

/** It ends, and is taken off the mailbox's list however often that takes. */
export const expectEnd = (decision: Decided, ...more: ReadonlyArray<RegistrationAction>): void =>
  expectRemoval(decision, { ...removed, requestId: "r1" }, more)

/** The same, and the request that made it may make it again. */
export const expectUndone = (decision: Decided): void => expectRemoval(decision, removed, [])

/** These actions are begun; after a crash the stored timer fires at once. */
export const expectBegun = (decision: Decided, ...actions: ReadonlyArray<unknown>): void => {
  expect(decision.actions).toEqual(actions)
  if (decision.durable) expect(decision.timerAtMs).toBe(nowMs)
  else expect(decision.timerAtMs).toBeUndefined()
  expect(decision.deferUntilMs).toBe(leaseEndMs)
}

export const expectNothing = (decision: Decided): void =>
  expect(effectsOf(decision)).toBeUndefined()

/** A browser whose push service rejects the push that runs, and the report of that. */
export const rejecting: Registered = { ...pushing, form: "webpush" }
export const rejected: DeliveryOutcome = {
  _tag: "PermanentFailure",
  code: 403,
  problem: "answered 403"
}
export const report = {
  _tag: "ReportFailure",
  cause: "registration",
  atMs: nowMs,
  description: `Pushes to http://example.org/… are suspended: answered 403, since ${
    new Date(nowMs).toISOString()
  }. Nothing is pushed there before the registration is resumed, or its subscriber renews it.`,
  isOverdue: false
} satisfies RegistrationAction
