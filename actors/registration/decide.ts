/**
 * What a registration decides (protocol §1.4): nothing is pushed before the callback has echoed
 * a challenge; what is pushed goes in the order of the mailbox's log, one push at a time, and the
 * cursor follows what was acknowledged.
 */
import { become, stay } from "../../runtime/index.ts"
import type { Decision, DecisionContext, Variant } from "../../runtime/index.ts"
import type { Schedule } from "../delivery/schedule.ts"
import { registrationLeaseMs, registrationSecretsMax, rotationMs } from "../limits.ts"
import { deny, isOutdated } from "../reasons.ts"
import {
  drop,
  end,
  goOn,
  type Intent,
  type Registered,
  type RegistrationDecision,
  type Registrations
} from "./course.ts"
import { viewOf } from "./course.ts"
import { away, detached, found, pushed, verified } from "./outcomes.ts"
import type {
  RegistrationAction,
  RegistrationMessage,
  RegistrationReply,
  RegistrationState
} from "./protocol.ts"

type Row = Registrations["Registered"]
type Refused = Decision<never>

const done: RegistrationReply = { _tag: "Done" }

const described = (state: Registered, nowMs: number): RegistrationReply => ({
  _tag: "Described",
  view: viewOf(state, nowMs)
})

const created = (state: Registered, nowMs: number, repeated: boolean): RegistrationReply => ({
  _tag: "Created",
  view: viewOf(state, nowMs),
  repeated
})

/** What is asked of the callback; in the WebSub form its secret is used from the echo on. */
const subscribe = (
  { form, secret }: { readonly form: string; readonly secret?: string | undefined },
  { challenge, leaseSeconds }: { readonly challenge: string; readonly leaseSeconds: number },
  nowMs: number
): Intent => ({
  mode: "subscribe",
  challenge,
  leaseSeconds,
  tries: 0,
  nextAtMs: nowMs,
  ...form === "native" || secret === undefined ? {} : { secret }
})

const register = (
  _state: RegistrationState,
  message: Variant<RegistrationMessage, "Create">,
  { nowMs }: DecisionContext
): Refused | RegistrationDecision => {
  const { account, callback, cursor, form, requestId, secret } = message
  if (form === "native" && secret === undefined) return deny("Invalid", "there is no secret")
  const state: Registered = {
    _tag: "Registered",
    requestId,
    createdAtMs: nowMs,
    form,
    callback,
    ...account === undefined ? {} : { account },
    secrets: form === "websub" || secret === undefined ? [] : [{ value: secret }],
    status: "unverified",
    version: 1,
    intent: subscribe(message, message, nowMs),
    cursor,
    mailboxGone: false,
    tries: 0
  }
  return goOn(state, nowMs, { look: false, changed: true }).reply(created(state, nowMs, false))
}

/** WebSub: subscribing again to what it has, with another lease or secret from the echo on. */
const renew: Row["Create"] = (state, message, { nowMs }) => {
  const { callback, cursor, form, requestId } = message
  if (requestId === state.requestId) return stay().reply(created(state, nowMs, true))
  if (form !== "websub" || state.form !== form || callback !== state.callback) return deny("Taken")
  const next: Registered = {
    ...drop(state, "verifyingUntilMs"),
    requestId,
    version: state.version + 1,
    intent: subscribe(message, message, nowMs),
    // Before the first echo nothing was promised.
    cursor: state.status === "unverified" ? cursor : state.cursor
  }
  return goOn(next, nowMs, { look: false, changed: true }).reply(created(next, nowMs, false))
}

const unsubscribe: Row["Unsubscribe"] = (state, { challenge }, { nowMs }) => {
  if (state.form !== "websub") return deny("Invalid", "it is no WebSub subscription")
  // One that never echoed keeps what it wished for.
  const wish = state.status === "unverified" ? state.intent : undefined
  const { leaseSeconds = 0, secret } = wish ?? {}
  const intent: Intent = {
    ...subscribe({ form: state.form, secret }, { challenge, leaseSeconds }, nowMs),
    mode: "unsubscribe"
  }
  const next = { ...drop(state, "verifyingUntilMs"), intent }
  return goOn(next, nowMs, { look: false, changed: true }).reply(done)
}

const lift: Row["Lift"] = (state, message, { nowMs }) => {
  const { callback = state.callback, challenge } = message
  if (isOutdated(state, message)) return deny("PreconditionFailed")
  const isMoved = callback !== state.callback
  if (isMoved && state.form === "websub") {
    return deny("Invalid", "a WebSub subscription is of its callback")
  }
  const reset = drop(state, "failingSinceMs", "nextAtMs", "problem", "code")
  const base: Registered = { ...reset, callback, version: state.version + 1, tries: 0 }
  const { leaseSeconds = 0, secret } = state.intent ?? {}
  const next: Registered = isMoved || state.status === "unverified"
    ? {
      ...drop(
        base,
        "pushing",
        "verifyingUntilMs",
        // What a push to another callback comes to is not waited for.
        ...state.underWay?.what === "push" ? ["underWay"] as const : []
      ),
      status: "unverified",
      intent: subscribe({ form: state.form, secret }, { challenge, leaseSeconds }, nowMs)
    }
    : { ...base, status: "active" }
  return goOn(next, nowMs, { look: next.status === "active", changed: true })
    .reply(described(next, nowMs))
}

const rotate: Row["Rotate"] = (state, { secret }, { nowMs }) => {
  if (state.form !== "native") return deny("Invalid", "the subscriber chose its secret")
  const older = state.secrets
    .map(({ untilMs, value }) => ({ value, untilMs: untilMs ?? nowMs + rotationMs }))
    .filter(({ untilMs }) => untilMs > nowMs)
  const secrets = [{ value: secret }, ...older].slice(0, registrationSecretsMax)
  const next: Registered = { ...state, secrets, version: state.version + 1 }
  return become<RegistrationState>(next).reply(described(next, nowMs))
}

/**
 * Begins a push, or looks for changes. When the mailbox has said that one item has come and that
 * is the next one, there is no need to look.
 */
const wakeUp: Row["WakeUp"] = (state, _message, { hint, nowMs }) => {
  const { cursor, pushing, status, underWay } = state
  const isFree = pushing === undefined && (underWay?.untilMs ?? 0) <= nowMs
  return isFree && status === "active" && hint === cursor + 1
    ? goOn({ ...state, pushing: hint }, nowMs, { look: false, changed: true })
    : goOn(state, nowMs, { look: true, changed: false })
}

/** The registration's row of the table, under the service's schedule. */
const registered = (schedule: Schedule): Row => ({
  Create: renew,
  Unsubscribe: unsubscribe,
  Describe: (state, _message, { nowMs }) => stay().reply(described(state, nowMs)),
  Lift: lift,
  Rotate: rotate,
  Delete: (state, message, { nowMs }) =>
    isOutdated(state, message) ? deny("PreconditionFailed") : end(state, nowMs).reply(done),
  Verified: verified(schedule),
  Found: found,
  Pushed: pushed(schedule),
  Detached: detached,
  Away: away,
  WakeUp: wakeUp
})

/** There is none, and the mailbox may not know yet. */
const detach = (
  _state: RegistrationState,
  _message: RegistrationMessage,
  { nowMs }: DecisionContext
): RegistrationDecision =>
  stay<RegistrationState>().perform<RegistrationAction>({ _tag: "Detach" }).hold(
    nowMs + registrationLeaseMs
  )

const none = (reason: "NotFound" | "Gone") => ({
  Unsubscribe: () => deny(reason),
  Describe: () => deny(reason),
  Lift: () => deny(reason),
  Rotate: () => deny(reason),
  Delete: () => deny(reason),
  Verified: () => stay(),
  Found: () => stay(),
  Pushed: () => stay(),
  Detached: () => stay<RegistrationState>().wake(null),
  Away: () => stay(),
  WakeUp: detach
})

/** The registration's table, under the service's schedule. */
export const registrationTable = (schedule: Schedule): Registrations => ({
  Absent: { Create: register, ...none("NotFound") },
  Registered: registered(schedule),
  Removed: { Create: register, ...none("Gone") }
})
