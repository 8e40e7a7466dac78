/**
 * The course of a registration: what it does next, and when. Two things go on beside each other:
 * verifying the callback, and looking for changes and pushing them, one at a time. Pure.
 *
 * While either is under way the stored wake-up is past and held: after a crash it fires at once,
 * and what was lost is begun again. What is under way is volatile; its answer clears it.
 */
import { become, stay } from "../../runtime/index.ts"
import type { BehaviorTable, Decision, Variant } from "../../runtime/index.ts"
import { registrationLeaseMs } from "../limits.ts"
import type {
  RegistrationAction,
  RegistrationMessage,
  RegistrationReply,
  RegistrationState,
  RegistrationView
} from "./protocol.ts"

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
    .wake(nowMs)
    .hold(nowMs + registrationLeaseMs)
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
  if ((state.underWay?.untilMs ?? 0) > nowMs) return look ? { ...state, again: true } : state
  const { callback, cursor, form, mailboxGone, nextAtMs = 0, pushing, status } = state
  const untilMs = nowMs + registrationLeaseMs
  if (isPushing(state) && pushing !== undefined) {
    if (nextAtMs > nowMs) return drop(state, "underWay")
    const secrets = signing(state, nowMs)
    const push = { form, callback, secrets, from: cursor, upTo: pushing, mailboxGone, untilMs }
    actions.push({ _tag: "Push", ...push })
    const begun: Registered = { ...state, underWay: { what: "push", untilMs } }
    return look ? { ...begun, again: true } : begun
  }
  const idle = drop(state, "underWay", "again")
  if (!look) return idle
  // Without pushes to make it only learns whether its mailbox is still there.
  actions.push({ _tag: "Look", from: cursor, reads: status === "active", untilMs })
  return { ...idle, underWay: { what: "look", untilMs } }
}

const earliest = (times: ReadonlyArray<number | undefined>): number | null => {
  const known = times.filter((time) => time !== undefined)
  return known.length === 0 ? null : Math.min(...known)
}

/** Goes on in `given`: begins what is due, and sets the wake-up for what is not. */
export const goOn = (given: Registered, nowMs: number, how: How): RegistrationDecision => {
  const { changed, laterMs, look } = how
  if (given.leaseUntilMs !== undefined && given.leaseUntilMs <= nowMs) {
    return end(given, nowMs)
  }
  const actions: Array<RegistrationAction> = []
  const state = advance(verify(given, nowMs, actions), nowMs, look, actions)
  const { intent, leaseUntilMs, nextAtMs, underWay, verifyingUntilMs } = state
  const atMs = earliest([
    laterMs,
    leaseUntilMs,
    verifyingUntilMs ?? intent?.nextAtMs,
    underWay?.untilMs ?? (isPushing(state) ? nextAtMs : undefined)
  ])
  const decision: RegistrationDecision = changed
    ? become<RegistrationState>(state)
    : stay<RegistrationState>().remember(state)
  for (const action of actions) decision.perform(action)
  if (verifyingUntilMs === undefined && underWay === undefined) return decision.wake(atMs)
  // What changes nothing was begun by a wake-up, which is stored.
  return (changed ? decision.wake(nowMs) : decision).hold(atMs ?? nowMs)
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
