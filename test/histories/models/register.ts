/** One value, with writes, reads and compare-and-set. */
import type { HistoryOperation as Operation, Model } from "../../../runtime/testing/index.ts"

export type RegisterInput =
  | { readonly kind: "write"; readonly value: number }
  | { readonly kind: "read" }
  /** Compare-and-set: writes `to` if the value is `from`. */
  | { readonly kind: "exchange"; readonly from: number; readonly to: number }

/** A read returns the value; an exchange 1 if it was made, else 0; a write nothing. */
export type RegisterOutput = number | undefined

export type RegisterOperation = Operation<RegisterInput, RegisterOutput>

export const register: Model<number, RegisterInput, RegisterOutput> = {
  initial: 0,
  keyOf: String,
  step: (state, input, output) => {
    switch (input.kind) {
      case "write":
        return [input.value]
      case "read":
        return output === undefined || output === state ? [state] : []
      case "exchange": {
        const isMade = state === input.from
        if (output !== undefined && output !== (isMade ? 1 : 0)) return []
        return [isMade ? input.to : state]
      }
    }
  }
}
