/** Shorthands for histories in tests. */
import type { HistoryOperation as Operation } from "../../runtime/testing/index.ts"

/** Operations on one resource, each with its start and end; without an end it is unknown. */
export const history = <Input, Output>() => {
  const operation = (
    start: number,
    end: number,
    input: Input,
    output: Output | undefined,
    outcome: Operation<Input, Output>["outcome"]
  ): Operation<Input, Output> => ({
    client: "c",
    resource: "r",
    input,
    output,
    start,
    end,
    outcome
  })
  return {
    ok: (start: number, end: number, input: Input, output?: Output) =>
      operation(start, end, input, output, "ok"),
    fail: (start: number, end: number, input: Input) =>
      operation(start, end, input, undefined, "fail"),
    info: (start: number, input: Input) => operation(start, Infinity, input, undefined, "info")
  }
}
