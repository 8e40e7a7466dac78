/** Tries every order of a small history; tests compare the checker with it. */
import type { HistoryOperation as Operation, Model } from "../../runtime/testing/index.ts"

/** Whether an order of the operations, without some of the unknown ones, explains all answers. */
export const isExplained = <State, Input extends { readonly kind: string }, Output>(
  { initial, step }: Model<State, Input, Output>,
  operations: ReadonlyArray<Operation<Input, Output>>
): boolean => {
  const endOf = ({ end, outcome }: Operation<Input, Output>) => outcome === "ok" ? end : Infinity
  const explains = (state: State, left: ReadonlyArray<Operation<Input, Output>>): boolean =>
    left.every(({ outcome }) => outcome === "info") ||
    left.some((one) =>
      left.every((other) => endOf(other) >= one.start) &&
      step(state, one.input, one.output).some((after) =>
        explains(after, left.filter((other) => other !== one))
      )
    )
  return explains(initial, operations.filter(({ outcome }) => outcome !== "fail"))
}
