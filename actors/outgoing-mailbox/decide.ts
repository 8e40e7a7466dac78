/**
 * The decisions of an outgoing mailbox: which relays are paused, and the release of what waits for
 * a pause that has ended. The progress of a release is in the record and its timer stays set, so
 * that a crash repeats one page at most. Pure.
 */
import { become, type BehaviorTable, type Decision, type DecisionContext, stay,
  type Variant } from "../../runtime/index.ts"
import { pausedOriginsMax, releasePassesMax, releasePassMs, releaseRetryMs } from "../limits.ts"
import { deny, denyEach, isOutdated, notOwner } from "../refusals.ts"
import type { Caller } from "../schemas.ts"
import type { OutgoingMailboxAction, OutgoingMailboxMessage, OutgoingMailboxReply,
  OutgoingMailboxState, Pauses, Release } from "./protocol.ts"

type OutgoingMailboxes = BehaviorTable<
  OutgoingMailboxState,
  OutgoingMailboxMessage,
  OutgoingMailboxReply,
  OutgoingMailboxAction
>

type OutgoingMailboxDecision = Decision<
  OutgoingMailboxState,
  OutgoingMailboxReply,
  OutgoingMailboxAction
>

type Known = Variant<OutgoingMailboxState, "Known">

/** An outgoing mailbox of which nothing was ever paused. */
const unpaused: Known = { _tag: "Known", origins: [], version: 0 }

const done: OutgoingMailboxReply = { _tag: "Done" }

export const outgoingMailboxTable: OutgoingMailboxes = {
  Absent: {
    Describe: (_state, message, context) => describe(unpaused, message, context),
    Replace: (_state, message, context) => replace(unpaused, message, context),
    Admit: (_state, message, context) => admit(unpaused, message, context),
    Remove: () => stay().reply(done),
    PageReleased: () => stay(),
    TimerFired: () => stay()
  },
  Known: {
    Describe: (state, message, context) => describe(state, message, context),
    Replace: (state, message, context) => replace(state, message, context),
    Admit: (state, message, context) => admit(state, message, context),
    Remove: (_state, message, context) => remove(message, context),
    PageReleased: (state, message, context) => pageReleased(state, message, context),
    TimerFired: ({ release }, _message, { nowMs }) => {
      if (release === undefined) return stay()
      const { isPartial: _, ...step } = release
      return stay<OutgoingMailboxState>()
        .perform<OutgoingMailboxAction>({ _tag: "ReleasePage", ...step })
        .deferTimer(nowMs + releaseRetryMs)
    }
  },
  Removed: {
    ...denyEach("Gone", "Describe", "Replace", "Admit"),
    Remove: () => stay().reply(done),
    PageReleased: () => stay(),
    TimerFired: () => stay()
  }
}

/** The id of the actor is the name of the account. */
const refusalFor = ({ caller }: { readonly caller: Caller }, { self }: DecisionContext) =>
  notOwner(self.id, caller, true)

const viewOf = ({ origins, pausedAtMs, version }: Known): Pauses => ({
  ...pausedAtMs === undefined ? {} : { pausedAtMs },
  origins,
  version
})

const described = (state: Known): OutgoingMailboxReply => ({
  _tag: "Described",
  view: viewOf(state)
})

const describe = (
  state: Known,
  message: Variant<OutgoingMailboxMessage, "Describe">,
  context: DecisionContext
): Decision<never, OutgoingMailboxReply> => {
  const reason = refusalFor(message, context)
  return reason === undefined ? stay().reply(described(state)) : deny(reason)
}

const replace = (
  state: Known,
  message: Variant<OutgoingMailboxMessage, "Replace">,
  context: DecisionContext
): Decision<never, OutgoingMailboxReply> | OutgoingMailboxDecision => {
  const reason = refusalFor(message, context)
  if (reason !== undefined) return deny(reason)
  const chosen = [...new Set(message.origins)]
  if (chosen.length > pausedOriginsMax) {
    return deny("Invalid", `relays to at most ${pausedOriginsMax} origins can be paused`)
  }
  const next = changed(state, message.isPaused, chosen, context.nowMs)
  // A repetition finds its change, also where it expects the version before.
  if (next === undefined) return stay().reply(described(state))
  if (isOutdated(state, message)) return deny("PreconditionFailed")
  return become<OutgoingMailboxState>(next)
    .setTimer(next.release === undefined ? null : context.nowMs)
    .perform<OutgoingMailboxAction>({ _tag: "NotePauses", pauses: viewOf(next) })
    .reply(described(next))
}

/** The mailbox with these pauses; undefined if it has them. */
const changed = (
  state: Known,
  isPaused: boolean,
  chosen: ReadonlyArray<string>,
  nowMs: number
): Known | undefined => {
  const { origins: before, pausedAtMs: beforeMs, release, version: last, ...kept } = state
  const origins = chosen.map((origin) =>
    before.find((one) => one.origin === origin) ?? { origin, atMs: nowMs }
  )
  const wasPaused = beforeMs !== undefined
  const isLifted = before.some(({ origin }) => !chosen.includes(origin))
  if (wasPaused === isPaused && !isLifted && origins.length === before.length) return undefined
  const version = last + 1
  // While all relays are paused a release would be in vain. Their resumption releases all.
  const releases = !isPaused && (isLifted || wasPaused || release !== undefined)
  return {
    ...kept,
    ...isPaused ? { pausedAtMs: beforeMs ?? nowMs } : {},
    origins,
    version,
    ...releases ? { release: { version, pass: 1 } } : {}
  }
}

const isPausing = ({ origins, pausedAtMs }: Known): boolean =>
  pausedAtMs !== undefined || origins.length > 0

const admit = (
  state: Known,
  message: Variant<OutgoingMailboxMessage, "Admit">,
  context: DecisionContext
): Decision<never, OutgoingMailboxReply> | OutgoingMailboxDecision => {
  const reason = refusalFor(message, context)
  if (reason !== undefined) return deny(reason)
  if (!isPausing(state)) return stay().reply(done)
  const { waitingBytes: usedBytes = 0 } = state
  const waitingBytes = usedBytes + message.bytes
  return waitingBytes > message.bytesMax
    ? stay().reply<OutgoingMailboxReply>({ _tag: "NoRoom", usedBytes })
    : become<OutgoingMailboxState>({ ...state, waitingBytes }).reply(done)
}

const remove = (
  message: Variant<OutgoingMailboxMessage, "Remove">,
  context: DecisionContext
): Decision<never> | OutgoingMailboxDecision => {
  const reason = refusalFor(message, context)
  return reason === undefined
    ? become<OutgoingMailboxState>({ _tag: "Removed" }).setTimer(null).reply(done)
    : deny(reason)
}

/** The release with which the next page, or the next pass, begins; undefined at its end. */
const afterPage = (
  release: Release,
  { isPartial = false, next }: Variant<OutgoingMailboxMessage, "PageReleased">
): Release | undefined => {
  const { pass, version } = release
  const lacks = isPartial || release.isPartial === true
  if (next !== undefined) return { version, pass, after: next, ...lacks ? { isPartial: true } : {} }
  return lacks && pass < releasePassesMax ? { version, pass: pass + 1 } : undefined
}

const pageReleased = (
  state: Known,
  message: Variant<OutgoingMailboxMessage, "PageReleased">,
  { nowMs }: DecisionContext
): Decision<never> | OutgoingMailboxDecision => {
  const { release, waitingBytes = 0, ...others } = state
  // While another pause stands, what it keeps back still waits.
  const idle = waitingBytes > 0 && isPausing(state) ? { ...others, waitingBytes } : others
  const isCurrent = release !== undefined && release.version === message.version &&
    release.pass === message.pass && release.after === message.after
  // A page that was repeated ends twice.
  if (!isCurrent) return stay()
  const next = afterPage(release, message)
  if (next === undefined) return become<OutgoingMailboxState>(idle).setTimer(null)
  const isPass = next.pass > release.pass
  return become<OutgoingMailboxState>({ ...state, release: next })
    .setTimer(isPass ? nowMs + releasePassMs : nowMs)
}
