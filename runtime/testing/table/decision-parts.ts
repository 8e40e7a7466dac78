/** A decision as a plain record: for comparisons and for traces. */
import { type Decision, isRefusal, type Refusal } from "../../actor/index.ts"

/** The parts of a decision; a part that the decision does not set is absent. */
export interface DecidedParts {
  /** The next state, which is stored. */
  readonly become?: unknown
  /** The next state, which is only in memory. */
  readonly becomeInMemory?: unknown
  readonly removesActor?: true
  /** The values of appended log items. */
  readonly append?: ReadonlyArray<string>
  readonly removeItems?: ReadonlyArray<number>
  /** ms since the epoch; null clears the timer. */
  readonly setTimer?: number | null
  readonly deferTimer?: number
  readonly signals?: ReadonlyArray<unknown>
  readonly reply?: unknown
  /** The reason of a refusal; its detail is for people and is not compared. */
  readonly refuse?: string
  /** The data of a refusal. */
  readonly data?: unknown
  readonly perform?: ReadonlyArray<unknown>
}

const refusalParts = (refusal: Refusal): Pick<DecidedParts, "data" | "refuse"> => ({
  refuse: refusal.reason,
  // Only definitions give data to refusals.
  ..."data" in refusal && { data: refusal.data }
})

/** The parts of a decision. */
export const partsOf = (decision: Decision<unknown, unknown, unknown>): DecidedParts => {
  const { actions, answer, deferUntilMs, durable, items, nextState, removals } = decision
  const { removesActor, signals, timerAtMs } = decision
  return {
    ...nextState !== undefined && (durable ? { become: nextState } : { becomeInMemory: nextState }),
    ...removesActor && { removesActor: true as const },
    ...items !== undefined && { append: items },
    ...removals !== undefined && { removeItems: removals },
    ...timerAtMs !== undefined && { setTimer: timerAtMs },
    ...deferUntilMs !== undefined && { deferTimer: deferUntilMs },
    ...signals !== undefined && { signals },
    ...answer !== undefined &&
      (isRefusal(answer) ? refusalParts(answer) : { reply: answer }),
    ...actions !== undefined && { perform: actions }
  }
}

/** The parts in one line; `nothing` for a decision that changes nothing. */
export const lineOfParts = (parts: DecidedParts): string =>
  Object.entries(parts).map(([name, value]) => `${name} ${JSON.stringify(value)}`).join(", ") ||
  "nothing"
