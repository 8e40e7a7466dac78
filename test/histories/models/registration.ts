/**
 * A push registration (A12). It is unverified until its callback has echoed the challenge. Its
 * cursor is the number of the last acknowledged notification, and never goes back. A deleted
 * registration never comes back.
 */
import type { HistoryOperation as Operation, Model } from "../../../runtime/testing/index.ts"

export type RegistrationStatus = "unverified" | "active" | "suspended" | "paused"

export type RegistrationInput =
  /** Pushes begin after this number. */
  | { readonly kind: "register"; readonly cursor: number }
  | { readonly kind: "show" }
  /** PUT: lifts a suspension, or verifies again. */
  | { readonly kind: "lift" }
  | { readonly kind: "delete" }

export type RegistrationOutput =
  | { readonly _tag: "Done" }
  | {
    readonly _tag: "Shown"
    readonly status: RegistrationStatus
    readonly cursor: number
  }
  /** The resource does not exist (404) or was removed (410). */
  | { readonly _tag: "Gone" }

export type RegistrationOperation = Operation<RegistrationInput, RegistrationOutput>

export interface RegistrationState {
  readonly is: "absent" | "registered" | "deleted"
  readonly status: RegistrationStatus
  readonly cursor: number
  /** The suspension was lifted since the registration was last shown. */
  readonly isLifted: boolean
}

const nexts: Readonly<Record<RegistrationStatus, ReadonlyArray<RegistrationStatus>>> = {
  unverified: ["unverified", "active", "suspended"],
  active: ["active", "suspended"],
  suspended: ["suspended"],
  paused: ["paused"]
}

const isDone = (output: RegistrationOutput | undefined) =>
  output === undefined || output._tag === "Done"

const inRegistered = (
  state: RegistrationState,
  input: RegistrationInput,
  output: RegistrationOutput | undefined
): ReadonlyArray<RegistrationState> => {
  switch (input.kind) {
    case "register":
      return []
    case "lift":
      return isDone(output) ? [{ ...state, isLifted: true }] : []
    case "delete":
      return isDone(output) ? [{ ...state, is: "deleted" }] : []
    case "show": {
      if (output === undefined) return [state]
      if (output._tag !== "Shown" || output.cursor < state.cursor) return []
      const { cursor, status } = output
      if (!state.isLifted && !nexts[state.status].includes(status)) return []
      // Nothing is pushed before the callback has echoed.
      const isPushed = cursor > state.cursor
      if (isPushed && status === "unverified" && state.status === "unverified") return []
      return [{ is: "registered", status, cursor, isLifted: false }]
    }
  }
}

export const registration: Model<RegistrationState, RegistrationInput, RegistrationOutput> = {
  initial: { is: "absent", status: "unverified", cursor: 0, isLifted: false },
  keyOf: (state) => JSON.stringify(state),
  step: (state, input, output) => {
    if (state.is === "registered") return inRegistered(state, input, output)
    if (state.is === "absent" && input.kind === "register") {
      return isDone(output) ? [{ ...state, is: "registered", cursor: input.cursor }] : []
    }
    return output === undefined || output._tag === "Gone" ? [state] : []
  }
}
