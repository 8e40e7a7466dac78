/** A value that is published, overwritten, and removed for ever, like content (A1, A3). */
import type { HistoryOperation as Operation, Model } from "../../../runtime/testing/index.ts"

export type StoredInput =
  | { readonly kind: "publish"; readonly value: string }
  | { readonly kind: "overwrite"; readonly value: string }
  | { readonly kind: "read" }
  | { readonly kind: "remove" }

export type StoredOutput =
  | { readonly _tag: "Done" }
  | { readonly _tag: "Found"; readonly value: string }
  /** The resource does not exist (404) or was removed (410). */
  | { readonly _tag: "Gone" }

export type StoredOperation = Operation<StoredInput, StoredOutput>

export interface StoredState {
  readonly is: "absent" | "there" | "removed"
  readonly value: string
}

const isDone = (output: StoredOutput | undefined) => output === undefined || output._tag === "Done"

export const stored: Model<StoredState, StoredInput, StoredOutput> = {
  initial: { is: "absent", value: "" },
  keyOf: ({ is, value }) => `${is} ${value}`,
  step: (state, input, output) => {
    const isFirst = state.is === "absent" && input.kind === "publish"
    if (isFirst) return isDone(output) ? [{ is: "there", value: input.value }] : []
    if (state.is !== "there") return output === undefined || output._tag === "Gone" ? [state] : []
    switch (input.kind) {
      case "publish":
        return []
      case "overwrite":
        return isDone(output) ? [{ ...state, value: input.value }] : []
      case "remove":
        return isDone(output) ? [{ is: "removed", value: "" }] : []
      case "read":
        return output === undefined || output._tag === "Found" && output.value === state.value
          ? [state]
          : []
    }
  }
}
