/**
 * The decisions of an idempotency key. An attempt whose outcome is unknown keeps the key:
 * the next attempt with the same request finds what was stored. Only a request that certainly has
 * changed nothing frees its key.
 */
import { become, type BehaviorTable, type Decision, type DecisionContext, stay,
  type Variant } from "../../runtime/index.ts"
import { idempotencyAttemptMaxMs, idempotencyRetentionMs } from "../limits.ts"
import { deny } from "../refusals.ts"
import type { IdempotencyMessage, IdempotencyReply, IdempotencyState } from "./protocol.ts"

type Keys = BehaviorTable<IdempotencyState, IdempotencyMessage, IdempotencyReply>

type Begun = Variant<IdempotencyState, "Begun">

type Used = Variant<IdempotencyState, "Begun" | "Done">

const acknowledged: IdempotencyReply = { _tag: "Acknowledged" }

/** After an indeterminate outcome the deposit may be stored, and its signal may come later. */
const proceed = ({ firstAtMs, isDoubtful, stored }: Begun): IdempotencyReply => ({
  _tag: "Proceed",
  ...stored === undefined && isDoubtful !== true
    ? {}
    : { earlier: { ...stored, firstAtMs, isCertain: stored !== undefined } }
})

/** The retention of a key begins with its first use, whatever its result. */
const expire = (state: Used, nowMs: number): Decision<IdempotencyState> => {
  const endsAtMs = state.firstAtMs + idempotencyRetentionMs
  return nowMs >= endsAtMs
    ? stay<IdempotencyState>().removeActor()
    : stay<IdempotencyState>().setTimer(endsAtMs)
}

/** Whether both attempts ran on one node, which has restarted between them. */
const isOfEarlierStart = (earlier: string, later: string): boolean => {
  const [node, start] = earlier.split(".")
  const [sameNode, laterStart] = later.split(".")
  return laterStart !== undefined && node === sameNode && start !== laterStart
}

/** The state after an attempt that has ended, so that another one may begin at once. */
const ended = (state: Begun, fingerprint = state.fingerprint): Begun => ({
  ...state,
  ...fingerprint === undefined ? {} : { fingerprint },
  attemptAtMs: 0,
  isDoubtful: true
})

const begin = (
  state: Begun,
  { attempt, fingerprint }: Variant<IdempotencyMessage, "Begin">,
  { nowMs }: DecisionContext
) => {
  if (attempt === state.attempt) return stay().reply(proceed(state))
  // An attempt that is too old was interrupted. So was one from the future: the clock went back.
  const ageMs = nowMs - state.attemptAtMs
  const mayLive = ageMs >= 0 && ageMs < idempotencyAttemptMaxMs
  if (mayLive && !isOfEarlierStart(state.attempt, attempt)) {
    return stay().reply<IdempotencyReply>({ _tag: "InProgress" })
  }
  const first = state.fingerprint ?? fingerprint
  if (fingerprint !== undefined && first !== fingerprint) {
    return stay().reply<IdempotencyReply>({ _tag: "OtherRequest" })
  }
  const next: Begun = { ...ended(state, first), attempt, attemptAtMs: nowMs }
  return become<IdempotencyState>(next).reply(proceed(next))
}

export const idempotencyTable: Keys = {
  Absent: {
    Begin: (_state, { attempt, fingerprint }, { nowMs }) =>
      become<IdempotencyState>({
        _tag: "Begun",
        attempt,
        firstAtMs: nowMs,
        attemptAtMs: nowMs,
        ...fingerprint === undefined ? {} : { fingerprint }
      })
        .setTimer(nowMs + idempotencyRetentionMs)
        .reply({ _tag: "Proceed" }),
    Complete: () => deny("NotFound"),
    Abandon: () => stay().reply(acknowledged),
    Interrupt: () => stay().reply(acknowledged),
    TimerFired: () => stay()
  },
  Begun: {
    Begin: begin,
    Complete: (state, { attempt, fingerprint, sealed }) =>
      attempt === state.attempt
        ? become<IdempotencyState>({
          _tag: "Done",
          attempt,
          firstAtMs: state.firstAtMs,
          fingerprint,
          sealed
        })
          .reply(acknowledged)
        : deny("Superseded"),
    Abandon: (state, { attempt }) => {
      if (attempt !== state.attempt) return deny("Superseded")
      // This attempt has changed nothing; an earlier one may have.
      return state.isDoubtful === true || state.stored !== undefined
        ? become<IdempotencyState>(ended(state)).reply(acknowledged)
        : stay<IdempotencyState>().removeActor().reply(acknowledged)
    },
    Interrupt: (state, { attempt, fingerprint }) =>
      attempt === state.attempt
        ? become<IdempotencyState>(ended(state, fingerprint ?? state.fingerprint))
          .reply(acknowledged)
        : deny("Superseded"),
    // The mailbox signals in the commit of the deposit; the hint is the number of the log item.
    TimerFired: (state, _message, { hint, isSignal, isSignalDurable, nowMs }) => {
      if (!isSignal) return expire(state, nowMs)
      // A lost commit proves nothing. If the store has kept it, its signal comes once more.
      if (!isSignalDurable) return stay()
      const n = hint ?? state.stored?.n
      return become<IdempotencyState>({ ...state, stored: n === undefined ? {} : { n } })
    }
  },
  Done: {
    Begin: ({ fingerprint, sealed }) =>
      stay().reply<IdempotencyReply>({ _tag: "Done", fingerprint, sealed }),
    Complete: (state, { attempt }) =>
      attempt === state.attempt ? stay().reply(acknowledged) : deny("Superseded"),
    Abandon: (state, { attempt }) =>
      attempt === state.attempt ? stay().reply(acknowledged) : deny("Superseded"),
    Interrupt: (state, { attempt }) =>
      attempt === state.attempt ? stay().reply(acknowledged) : deny("Superseded"),
    TimerFired: (state, _message, { isSignal, nowMs }) => isSignal ? stay() : expire(state, nowMs)
  }
}
