/** A registration and messages to it, for the tests of its table. */
import { expect } from "vitest"
import type { Outcome } from "../../actors/delivery/protocol.ts"
import { registrationLeaseMs } from "../../actors/limits.ts"
import { registrationTable } from "../../actors/registration/decide.ts"
import type { Action, Message, Reply, State } from "../../actors/registration/protocol.ts"
import type { Member } from "../../runtime/index.ts"
import { decider, effectsOf, nowMs } from "./cells.ts"

export type Registered = Member<State, "Registered">

export const schedule = [0, 5_000, 60_000]
export const table = registrationTable(schedule)
export const decide = decider<State, Message, Reply, Action>(table)

export const callback = "http://example.org/hook"
export const leaseEndMs = nowMs + registrationLeaseMs
export const absent: State = { _tag: "Absent" }
export const removed: State = { _tag: "Removed", removedAtMs: nowMs }
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
export const looking: Registered = { ...active, underWay: { what: "look", untilMs: leaseEndMs } }
export const toPush: Registered = { ...active, pushing: 8 }
export const pushing: Registered = { ...toPush, underWay: { what: "push", untilMs: leaseEndMs } }
export const suspended: Registered = {
  ...toPush,
  status: "suspended",
  tries: 30,
  failingSinceMs: 1
}
export const subscribed: Registered = { ...active, form: "websub", secrets: [{ value: "hub" }] }

export const create: Member<Message, "Create"> = {
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
export const hubCreate: Member<Message, "Create"> = {
  ...create,
  requestId: "r2",
  form: "websub",
  secret: "hub2",
  leaseSeconds: 60,
  challenge: "c2",
  cursor: 9
}
export const unsubscribe: Message = { _tag: "Unsubscribe", challenge: "c3" }
export const describeIt: Message = { _tag: "Describe" }
export const lift: Member<Message, "Lift"> = { _tag: "Lift", challenge: "c4" }
export const rotate: Message = { _tag: "Rotate", secret: "whsec_2" }
export const remove: Member<Message, "Delete"> = { _tag: "Delete" }
export const delivered: Outcome = { _tag: "Delivered", code: 200 }
export const refused: Outcome = { _tag: "Refused", code: 404, problem: "not found" }
export const faulted: Outcome = { _tag: "Faulted", problem: "no answer in time" }
export const deferred: Outcome = { _tag: "Deferred", untilMs: nowMs + 700 }
export const verified = (outcome: Outcome, challenge = "c1"): Message => ({
  _tag: "Verified",
  challenge,
  outcome,
  random: 0.5
})
export const found = (upTo: number, more = false, mailboxGone = false): Message => ({
  _tag: "Found",
  untilMs: leaseEndMs,
  from: 3,
  upTo,
  more,
  mailboxGone
})
export const pushed = (outcome: Outcome, upTo = 8): Message => ({
  _tag: "Pushed",
  callback,
  upTo,
  outcome,
  random: 0.5
})
export const detached: Message = { _tag: "Detached", untilMs: leaseEndMs }
export const away: Message = { _tag: "Away", untilMs: leaseEndMs }
export const wakeUp: Message = { _tag: "WakeUp" }

export const verify = {
  _tag: "Verify",
  callback,
  mode: "subscribe",
  challenge: "c1",
  leaseSeconds: 0
}
export const look: Action = { _tag: "Look", from: 3, reads: true, untilMs: leaseEndMs }
export const push: Action = {
  _tag: "Push",
  form: "native",
  callback,
  secrets: ["whsec_1"],
  from: 3,
  upTo: 8,
  mailboxGone: false,
  untilMs: leaseEndMs
}
export const detach: Action = { _tag: "Detach" }

export type Decided = ReturnType<typeof decide>

/** It ends, and is taken off the mailbox's list however often that takes. */
export const expectEnd = (decision: Decided, ...more: ReadonlyArray<Action>): void => {
  expect(decision.nextState).toEqual({ _tag: "Removed", removedAtMs: nowMs })
  expect(decision.actions).toEqual([detach, ...more])
  expect(decision.wakeAtMs).toBe(nowMs)
  expect(decision.holdUntilMs).toBe(leaseEndMs)
}

/** These actions are begun; what is stored wakes it at once after a crash. */
export const expectBegun = (decision: Decided, ...actions: ReadonlyArray<unknown>): void => {
  expect(decision.actions).toEqual(actions)
  if (decision.durable) expect(decision.wakeAtMs).toBe(nowMs)
  else expect(decision.wakeAtMs).toBeUndefined()
  expect(decision.holdUntilMs).toBe(leaseEndMs)
}

export const expectNothing = (decision: Decided): void =>
  expect(effectsOf(decision)).toBeUndefined()
