/**
 * What a registration decides (protocol §1.4): nothing is pushed before the callback has echoed
 * a challenge; what is pushed goes in the order of the mailbox's log, one push at a time, and the
 * cursor follows what was acknowledged.
 */
import { become, type BehaviorTable, type Decision, type DecisionContext, stay,
  type Variant } from "../../runtime/index.ts"
import { deferredMinMs, failingMaxMs, registeringMs, registrationLeaseMs, registrationSecretsMax,
  rotationMs, unavailableRetryMs, verificationsMax } from "../limits.ts"
import { type DeliveryOutcome, dueAtMs, type Schedule } from "../outbound/index.ts"
import { deny, isOutdated } from "../refusals.ts"
import type { RegistrationAction, RegistrationMessage, RegistrationReply, RegistrationState,
  RegistrationView } from "./protocol.ts"

export type Registrations = BehaviorTable<
  RegistrationState,
  RegistrationMessage,
  RegistrationReply,
  RegistrationAction
>

export type Registered = Variant<RegistrationState, "Registered">

export type Intent = NonNullable<Registered["intent"]>

export type RegistrationDecision = Decision<
  RegistrationState,
  RegistrationReply,
  RegistrationAction
>

/** The properties of the state that may be left out. */
type Optional = {
  [Key in keyof Registered]-?: undefined extends { [K in Key]?: Registered[K] }[Key]
    ? object extends Pick<Registered, Key> ? Key : never
    : never
}[keyof Registered]

/** The state without these. */
export const drop = (state: Registered, ...keys: ReadonlyArray<Optional>): Registered => {
  const left: Record<string, unknown> = {}
  // Not by `delete`, which makes slow objects.
  for (const key in state) {
    if (!(keys as ReadonlyArray<string>).includes(key)) left[key] = state[key as Optional]
  }
  // All that is not optional is still there.
  return left as unknown as Registered
}

/** Why it may look for changes now, and whether anything of the state is new. */
interface How {
  /** There may be something that it does not know of. */
  readonly look: boolean
  /** The state has changed in what is stored. */
  readonly changed: boolean
  /** Nothing more can be done before, ms since the epoch; it looks then. */
  readonly laterMs?: number
}

/** Ends the registration, and takes it off the mailbox's list; `reason` tells a subscriber. */
export const end = (
  { callback, form }: Registered,
  nowMs: number,
  reason?: string
): RegistrationDecision => {
  const decision: RegistrationDecision = become<RegistrationState>({
    _tag: "Removed",
    removedAtMs: nowMs
  })
    .setTimer(nowMs)
    .deferTimer(nowMs + registrationLeaseMs)
    .perform<RegistrationAction>({ _tag: "Detach" })
  return reason === undefined || form !== "websub"
    ? decision
    : decision.perform<RegistrationAction>({ _tag: "Deny", callback, reason })
}

/** Begins a verification that is due. */
const verify = (
  state: Registered,
  nowMs: number,
  actions: Array<RegistrationAction>
): Registered => {
  const { callback, intent, verifyingUntilMs = 0 } = state
  if (verifyingUntilMs > nowMs) return state
  if (intent?.nextAtMs === undefined || intent.nextAtMs > nowMs) {
    return drop(state, "verifyingUntilMs")
  }
  const { challenge, leaseSeconds, mode } = intent
  actions.push({ _tag: "Verify", callback, mode, challenge, leaseSeconds })
  return { ...state, verifyingUntilMs: nowMs + registrationLeaseMs }
}

const isPushing = ({ pushing, status }: Registered): boolean =>
  status === "active" && pushing !== undefined

/** The secrets that sign now, newest first. */
const signing = ({ secrets }: Registered, nowMs: number): ReadonlyArray<string> =>
  secrets.flatMap(({ untilMs, value }) => untilMs === undefined || untilMs > nowMs ? [value] : [])

/** Begins a push that is due, or looks for changes. */
const advance = (
  state: Registered,
  nowMs: number,
  look: boolean,
  actions: Array<RegistrationAction>
): Registered => {
  if ((state.running?.untilMs ?? 0) > nowMs) return look ? { ...state, checkAgain: true } : state
  const { callback, cursor, form, mailboxGone, nextAtMs = 0, pushing, status } = state
  const untilMs = nowMs + registrationLeaseMs
  if (isPushing(state) && pushing !== undefined) {
    if (nextAtMs > nowMs) return drop(state, "running")
    const secrets = signing(state, nowMs)
    const push = { form, callback, secrets, from: cursor, upTo: pushing, mailboxGone, untilMs }
    actions.push({ _tag: "Push", ...push })
    const begun: Registered = { ...state, running: { kind: "push", untilMs } }
    return look ? { ...begun, checkAgain: true } : begun
  }
  const idle = drop(state, "running", "checkAgain")
  if (!look) return idle
  // Without pushes to make it only learns whether its mailbox is still there.
  actions.push({ _tag: "CheckMailbox", from: cursor, readsChanges: status === "active", untilMs })
  return { ...idle, running: { kind: "check", untilMs } }
}

const earliest = (times: ReadonlyArray<number | undefined>): number | null => {
  const known = times.filter((time) => time !== undefined)
  return known.length === 0 ? null : Math.min(...known)
}

/** Goes on in `given`: begins what is due, and sets the timer for what is not. */
export const goOn = (given: Registered, nowMs: number, how: How): RegistrationDecision => {
  const { changed, laterMs, look } = how
  if (given.leaseUntilMs !== undefined && given.leaseUntilMs <= nowMs) {
    return end(given, nowMs)
  }
  const actions: Array<RegistrationAction> = []
  const state = advance(verify(given, nowMs, actions), nowMs, look, actions)
  const { intent, leaseUntilMs, nextAtMs, running, verifyingUntilMs } = state
  const atMs = earliest([
    laterMs,
    leaseUntilMs,
    verifyingUntilMs ?? intent?.nextAtMs,
    running?.untilMs ?? (isPushing(state) ? nextAtMs : undefined)
  ])
  const decision: RegistrationDecision = changed
    ? become<RegistrationState>(state)
    : stay<RegistrationState>().becomeInMemory(state)
  for (const action of actions) decision.perform(action)
  if (verifyingUntilMs === undefined && running === undefined) return decision.setTimer(atMs)
  // What changes nothing was begun by a timer, which is stored.
  return (changed ? decision.setTimer(nowMs) : decision).deferTimer(atMs ?? nowMs)
}

/** As its owner sees it. */
export const viewOf = (state: Registered, nowMs: number): RegistrationView => {
  const { code, intent, lastAtMs, leaseUntilMs, problem, secrets, status } = state
  const isUnverified = status === "unverified"
  const older = secrets.flatMap(({ untilMs }) =>
    untilMs !== undefined && untilMs > nowMs ? [untilMs] : []
  )
  return {
    form: state.form,
    callback: state.callback,
    account: state.account,
    createdAtMs: state.createdAtMs,
    status,
    version: state.version,
    cursor: state.cursor,
    leaseUntilMs,
    attempts: isUnverified ? intent?.tries ?? 0 : state.tries,
    lastAtMs,
    nextAtMs: (isUnverified ? intent?.nextAtMs : state.nextAtMs) ?? undefined,
    code,
    problem,
    rotatedUntilMs: older.length === 0 ? undefined : Math.max(...older)
  }
}

/* What a registration makes of the answers that it gets: of callbacks, of its mailbox. Pure. */

type OutcomeRow = Registrations["Registered"]

type Failed = Extract<DeliveryOutcome, { readonly _tag: "PermanentFailure" | "RetryableFailure" }>

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
  const fault = failed._tag === "RetryableFailure"
    ? { ...failed, problem }
    : { _tag: "RetryableFailure", problem } as const
  const made = Math.min(tries, schedule.length - 1)
  const dueMs = dueAtMs(schedule, made, fault, nowMs, random) ?? 0
  return Math.max(dueMs, nowMs + unavailableRetryMs)
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
    if (outcome._tag === "RetryableFailure" && tries < verificationsMax) {
      const nextAtMs = retryAtMs(schedule, tries, outcome, nowMs, random)
      return on({ ...failed, intent: { ...intent, tries, nextAtMs } })
    }
    // What holds goes on without it; an unverified one keeps what it wished, to be asked anew.
    if (state.status !== "unverified") return on(drop(failed, "intent"))
    const { nextAtMs: _, ...wish } = intent
    return on({ ...failed, intent: { ...wish, mode: "subscribe", tries } })
  }

/** A look has ended; or a push met its mailbox gone. */
export const found: OutcomeRow["Checked"] = (state, message, { nowMs }) => {
  const { from, mailboxGone, more, untilMs, upTo } = message
  const { checkAgain = false, running } = state
  if (running === undefined) return stay()
  if (mailboxGone && state.status !== "active") return end(state, nowMs, mailboxIsGone)
  if (mailboxGone) {
    const last = drop(state, "running", "checkAgain", "nextAtMs")
    const next: Registered = { ...last, mailboxGone, pushing: state.cursor, tries: 0 }
    return goOn(next, nowMs, { look: false, changed: true })
  }
  // One from before the last push may have ended in the same millisecond.
  const isCurrent = running.kind === "check" && running.untilMs === untilMs &&
    from === state.cursor
  if (!isCurrent) return stay()
  const free = drop(state, "running")
  if (upTo <= from || state.status !== "active") {
    return goOn(free, nowMs, { look: checkAgain, changed: false })
  }
  return goOn({ ...free, pushing: upTo }, nowMs, { look: checkAgain || more, changed: true })
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
  const look = state.checkAgain === true || state.running === undefined
  const next: Registered = {
    ...drop(state, "pushing", "running", "failingSinceMs", "nextAtMs", "problem"),
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
  const free = drop(state, "running")
  const on = (next: Registered): RegistrationDecision =>
    goOn(next, nowMs, { look: false, changed: true })
  if (outcome._tag === "Deferred") return on({ ...free, nextAtMs: deferredUntilMs(outcome, nowMs) })
  if (outcome._tag === "PermanentFailure" && (state.mailboxGone || outcome.code === 410)) {
    return end(state, nowMs, state.mailboxGone ? mailboxIsGone : undefined)
  }
  const tries = state.tries + 1
  const failingSinceMs = state.failingSinceMs ?? nowMs
  const failed = { ...failing(free, outcome, nowMs), tries, failingSinceMs }
  if (nowMs - failingSinceMs < failingMaxMs) {
    return on({ ...failed, nextAtMs: retryAtMs(schedule, tries, outcome, nowMs, random) })
  }
  if (state.mailboxGone) return end(state, nowMs, mailboxIsGone)
  return on({ ...drop(failed, "nextAtMs", "checkAgain"), status: "suspended" })
}

/** Goes on a little later: it could not look or push. */
const later = (state: Registered, nowMs: number): RegistrationDecision => {
  const laterMs = nowMs + unavailableRetryMs
  const free = drop(state, "running")
  const isPushing = state.pushing !== undefined
  const next = isPushing ? { ...free, nextAtMs: laterMs } : free
  return goOn(next, nowMs, { look: false, changed: isPushing, laterMs })
}

export const away: OutcomeRow["Unavailable"] = (state, { untilMs }, { nowMs }) =>
  state.running?.untilMs === untilMs ? later(state, nowMs) : stay()

/** The mailbox does not know it: not yet, since it is made first, or no more. */
export const detached: OutcomeRow["Detached"] = (state, { untilMs }, { nowMs }) => {
  if (state.running?.untilMs !== untilMs) return stay()
  return nowMs - state.createdAtMs < registeringMs ? later(state, nowMs) : end(state, nowMs)
}

/*
 * The course of a registration: what it does next, and when. Two things go on beside each other:
 * verifying the callback, and looking for changes and pushing them, one at a time. Pure.
 *
 * While either is under way the stored timer is past and held: after a crash it fires at once,
 * and what was lost is begun again. What is under way is volatile; its answer clears it.
 */

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

const lift: Row["Update"] = (state, message, { nowMs }) => {
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
        ...state.running?.kind === "push" ? ["running"] as const : []
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
const timerFired: Row["TimerFired"] = (state, _message, { hint, nowMs }) => {
  const { cursor, pushing, status, running } = state
  const isFree = pushing === undefined && (running?.untilMs ?? 0) <= nowMs
  return isFree && status === "active" && hint === cursor + 1
    ? goOn({ ...state, pushing: hint }, nowMs, { look: false, changed: true })
    : goOn(state, nowMs, { look: true, changed: false })
}

/** The registration's row of the table, under the service's schedule. */
const registered = (schedule: Schedule): Row => ({
  Create: renew,
  Unsubscribe: unsubscribe,
  Describe: (state, _message, { nowMs }) => stay().reply(described(state, nowMs)),
  Update: lift,
  Rotate: rotate,
  Delete: (state, message, { nowMs }) =>
    isOutdated(state, message) ? deny("PreconditionFailed") : end(state, nowMs).reply(done),
  Verified: verified(schedule),
  Checked: found,
  Pushed: pushed(schedule),
  Detached: detached,
  Unavailable: away,
  TimerFired: timerFired
})

/** There is none, and the mailbox may not know yet. */
const detach = (
  _state: RegistrationState,
  _message: RegistrationMessage,
  { nowMs }: DecisionContext
): RegistrationDecision =>
  stay<RegistrationState>().perform<RegistrationAction>({ _tag: "Detach" }).deferTimer(
    nowMs + registrationLeaseMs
  )

const none = (reason: "NotFound" | "Gone") => ({
  Unsubscribe: () => deny(reason),
  Describe: () => deny(reason),
  Update: () => deny(reason),
  Rotate: () => deny(reason),
  Delete: () => deny(reason),
  Verified: () => stay(),
  Checked: () => stay(),
  Pushed: () => stay(),
  Detached: () => stay<RegistrationState>().setTimer(null),
  Unavailable: () => stay(),
  TimerFired: detach
})

/** The registration's table, under the service's schedule. */
export const registrationTable = (schedule: Schedule): Registrations => ({
  Absent: { Create: register, ...none("NotFound") },
  Registered: registered(schedule),
  Removed: { Create: register, ...none("Gone") }
})
