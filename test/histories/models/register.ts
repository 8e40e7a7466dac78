/** One value that is written, read, and exchanged for another. */
import type { Model, Operation } from "../history.ts"

export type RegisterInput =
  | { readonly kind: "write"; readonly value: number }
  | { readonly kind: "read" }
  /** Writes `to` where `from` is. */
  | { readonly kind: "exchange"; readonly from: number; readonly to: number }

/** Of a read its value, of an exchange whether it was made (1) or not (0), of a write nothing. */
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
