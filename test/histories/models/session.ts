/**
 * A session on the bridge (B2 to B7): three answers in order. The first two may be overwritten
 * until the third, which is accepted once, ends the session.
 */
import type { HistoryOperation as Operation, Model } from "../../../runtime/testing/index.ts"

export const sessionSteps = ["name", "quest", "hard_question"] as const
export type SessionStep = typeof sessionSteps[number]
export type SessionStatus = SessionStep | "crossed" | "cast"

export type SessionInput =
  | { readonly kind: "begin" }
  | { readonly kind: "answer"; readonly step: SessionStep; readonly text: string }
  /** The recorded answer of a step. */
  | { readonly kind: "recorded"; readonly step: SessionStep }
  | { readonly kind: "show" }
  | { readonly kind: "delete" }

export type SessionOutput =
  | { readonly _tag: "Begun" }
  /** Recorded (201) or overwritten (200); the third answer was right. */
  | { readonly _tag: "Recorded" }
  | { readonly _tag: "Overwritten" }
  /** The third answer was wrong, and the session is over (406). */
  | { readonly _tag: "Cast" }
  /** Out of order (409): nothing was recorded. */
  | { readonly _tag: "TooEarly" }
  /** The session was over already (405). */
  | { readonly _tag: "Over" }
  | { readonly _tag: "Answer"; readonly text: string }
  | { readonly _tag: "Shown"; readonly status: SessionStatus }
  | { readonly _tag: "Deleted" }
  /** The session does not exist (404) or was removed (410). */
  | { readonly _tag: "Gone" }

export type SessionOperation = Operation<SessionInput, SessionOutput>

export interface SessionState {
  readonly is: "absent" | "begun" | "deleted"
  readonly end: "crossed" | "cast" | undefined
  readonly answers: ReadonlyArray<string>
}

const agrees = (reported: SessionOutput, possible: SessionOutput): boolean =>
  JSON.stringify(reported) === JSON.stringify(possible)

/** The state after each possible answer; the actual answer selects one. */
const reported = (
  output: SessionOutput | undefined,
  possible: ReadonlyArray<readonly [SessionOutput, SessionState]>
): ReadonlyArray<SessionState> =>
  possible.flatMap(([one, after]) => output === undefined || agrees(output, one) ? [after] : [])

const answer = (
  state: SessionState,
  step: SessionStep,
  text: string
): ReadonlyArray<readonly [SessionOutput, SessionState]> => {
  const at = sessionSteps.indexOf(step)
  if (state.end !== undefined) return [[{ _tag: "Over" }, state]]
  if (at > state.answers.length) return [[{ _tag: "TooEarly" }, state]]
  const after = { ...state, answers: state.answers.toSpliced(at, 1, text) }
  if (at < state.answers.length) return [[{ _tag: "Overwritten" }, after]]
  if (step !== "hard_question") return [[{ _tag: "Recorded" }, after]]
  return [
    [{ _tag: "Recorded" }, { ...after, end: "crossed" }],
    [{ _tag: "Cast" }, { ...after, end: "cast" }]
  ]
}

const inBegun = (
  state: SessionState,
  input: SessionInput
): ReadonlyArray<readonly [SessionOutput, SessionState]> => {
  switch (input.kind) {
    case "begin":
      return []
    case "answer":
      return answer(state, input.step, input.text)
    case "recorded": {
      const text = state.answers[sessionSteps.indexOf(input.step)]
      return [[text === undefined ? { _tag: "Gone" } : { _tag: "Answer", text }, state]]
    }
    case "show": {
      const waiting = sessionSteps[state.answers.length] ?? "hard_question"
      return [[{ _tag: "Shown", status: state.end ?? waiting }, state]]
    }
    case "delete":
      return [[{ _tag: "Deleted" }, { is: "deleted", end: undefined, answers: [] }]]
  }
}

export const session: Model<SessionState, SessionInput, SessionOutput> = {
  initial: { is: "absent", end: undefined, answers: [] },
  keyOf: (state) => JSON.stringify(state),
  step: (state, input, output) => {
    if (state.is === "begun") return reported(output, inBegun(state, input))
    if (state.is === "absent" && input.kind === "begin") {
      return reported(output, [[{ _tag: "Begun" }, { ...state, is: "begun" }]])
    }
    return reported(output, [[{ _tag: "Gone" }, state]])
  }
}
