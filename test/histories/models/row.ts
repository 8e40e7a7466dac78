/** A row of a table, which is put and removed, and listed by the index of a number (C2, C3, C4). */
import type { HistoryOperation as Operation, Model } from "../../../runtime/testing/index.ts"

export interface RowValue {
  readonly name: string
  readonly number: number
}

export type RowInput =
  | { readonly kind: "put"; readonly row: RowValue }
  | { readonly kind: "read" }
  | { readonly kind: "remove" }

export type RowOutput =
  | { readonly _tag: "Done" }
  | { readonly _tag: "Found"; readonly row: RowValue }
  /** The row does not exist (404) or was removed (410). */
  | { readonly _tag: "Gone" }
  /** It is not among the rows of at least this number. */
  | { readonly _tag: "Unlisted"; readonly least: number }

export type RowOperation = Operation<RowInput, RowOutput>

/** undefined: there is no row. */
export type RowState = RowValue | undefined

const isSame = (one: RowValue, other: RowValue): boolean =>
  one.name === other.name && one.number === other.number

const isPossible = (state: RowState, output: RowOutput): boolean => {
  switch (output._tag) {
    case "Done":
      return false
    case "Found":
      return state !== undefined && isSame(state, output.row)
    case "Gone":
      return state === undefined
    case "Unlisted":
      return state === undefined || state.number < output.least
  }
}

export const row: Model<RowState, RowInput, RowOutput> = {
  initial: undefined,
  keyOf: (state) => state === undefined ? "" : `${state.number} ${state.name}`,
  step: (state, input, output) => {
    switch (input.kind) {
      case "put":
        return output === undefined || output._tag === "Done" ? [input.row] : []
      case "remove":
        if (output?._tag === "Done") return state === undefined ? [] : [undefined]
        return output === undefined ? [undefined] : isPossible(state, output) ? [state] : []
      case "read":
        return output === undefined || isPossible(state, output) ? [state] : []
    }
  }
}
