/** What the memory of an idempotency key decides. */
import { become, type BehaviorTable, type Decision, stay,
  type Variant } from "../../runtime/index.ts"
import { idempotencyAttemptMaxMs, idempotencyRetentionMs } from "../limits.ts"
import { deny } from "../refusals.ts"
import type { IdempotencyMessage, IdempotencyReply, IdempotencyState } from "./protocol.ts"

type Keys = BehaviorTable<IdempotencyState, IdempotencyMessage, IdempotencyReply>

type Used = Variant<IdempotencyState, "Begun" | "Done">

const proceed: IdempotencyReply = { _tag: "Proceed" }

const acknowledged: IdempotencyReply = { _tag: "Acknowledged" }

/** The retention of a key begins with its first use, whatever its result. */
const expire = (state: Used, nowMs: number): Decision<IdempotencyState> => {
  const endsAtMs = state.firstAtMs + idempotencyRetentionMs
  return nowMs >= endsAtMs
    ? stay<IdempotencyState>().removeActor()
    : stay<IdempotencyState>().setTimer(endsAtMs)
}

/** Whether the node of attempt `later` has restarted since attempt `earlier`. */
const isOfEarlierStart = (earlier: string, later: string): boolean => {
  const [node, start] = earlier.split(".")
  const [sameNode, laterStart] = later.split(".")
  return laterStart !== undefined && node === sameNode && start !== laterStart
}

export const idempotencyTable: Keys = {
  Absent: {
    Begin: (_state, { attempt }, { nowMs }) =>
      become<IdempotencyState>({ _tag: "Begun", attempt, firstAtMs: nowMs, attemptAtMs: nowMs })
        .setTimer(nowMs + idempotencyRetentionMs)
        .reply(proceed),
    Complete: () => deny("NotFound"),
    Abandon: () => stay().reply(acknowledged),
    TimerFired: () => stay()
  },
  Begun: {
    Begin: (state, { attempt }, { nowMs }) => {
      if (attempt === state.attempt) return stay().reply(proceed)
      // An attempt that neither ended nor gave up was cut off; a clock that ran back counts too.
      const ageMs = nowMs - state.attemptAtMs
      const mayLive = ageMs >= 0 && ageMs < idempotencyAttemptMaxMs
      if (mayLive && !isOfEarlierStart(state.attempt, attempt)) {
        return stay().reply<IdempotencyReply>({ _tag: "InProgress" })
      }
      return become<IdempotencyState>({ ...state, attempt, attemptAtMs: nowMs }).reply(proceed)
    },
    Complete: (state, { attempt, bodyDigest, sealed }) =>
      attempt === state.attempt
        ? become<IdempotencyState>({
          _tag: "Done",
          attempt,
          firstAtMs: state.firstAtMs,
          bodyDigest,
          sealed
        })
          .reply(acknowledged)
        : deny("Superseded"),
    Abandon: (state, { attempt }) =>
      attempt === state.attempt
        ? stay<IdempotencyState>().removeActor().reply(acknowledged)
        : deny("Superseded"),
    TimerFired: (state, _message, { nowMs }) => expire(state, nowMs)
  },
  Done: {
    Begin: ({ bodyDigest, sealed }) =>
      stay().reply<IdempotencyReply>({ _tag: "Done", bodyDigest, sealed }),
    Complete: (state, { attempt }) =>
      attempt === state.attempt ? stay().reply(acknowledged) : deny("Superseded"),
    Abandon: (state, { attempt }) =>
      attempt === state.attempt ? stay().reply(acknowledged) : deny("Superseded"),
    TimerFired: (state, _message, { nowMs }) => expire(state, nowMs)
  }
}
