/** What clients did to resources, and the answers that they received: the input of the checker. */

/**
 * `ok`: answered, so the operation took effect between its start and its end. `fail`: refused, so
 * it has no effect. `info`: unknown; it may take effect at any time after its start, or never.
 */
export type OperationOutcome = "ok" | "fail" | "info"

/** One operation. Times are of one clock, in any unit; the end of an `info` is ignored. */
export interface HistoryOperation<Input, Output> {
  readonly client: string
  /** Histories are checked resource by resource. */
  readonly resource: string
  /** The request; reports and counts group by its `kind`. */
  readonly input: Input
  /** The answer: always for an `ok`; for an `info` where other operations reveal it. */
  readonly output?: Output | undefined
  readonly start: number
  readonly end: number
  readonly outcome: OperationOutcome
  /**
   * Operations with a rank took effect in this order, as their answers show, so the checker tries
   * no other. A model's `settle` gives ranks, to `ok` operations only.
   */
  readonly rank?: number
}

/** A sequential specification of a resource. */
export interface Model<State, Input extends { readonly kind: string }, Output> {
  readonly initial: State
  /**
   * The possible states after the operation; none when this answer is impossible in this state.
   * The answer is unknown when `output` is undefined.
   */
  readonly step: (state: State, input: Input, output: Output | undefined) => ReadonlyArray<State>
  /** Equal exactly for equal states. */
  readonly keyOf: (state: State) => string
  /** Narrows unknown outcomes by the whole history of the resource. */
  readonly settle?: (
    operations: ReadonlyArray<HistoryOperation<Input, Output>>
  ) => ReadonlyArray<HistoryOperation<Input, Output>>
}

/** The operations by resource, in the order in which the resources were first asked. */
export const byResource = <Input, Output>(
  operations: Iterable<HistoryOperation<Input, Output>>
): ReadonlyMap<string, ReadonlyArray<HistoryOperation<Input, Output>>> => {
  const parts = new Map<string, Array<HistoryOperation<Input, Output>>>()
  for (const operation of operations) {
    const part = parts.get(operation.resource)
    if (part === undefined) parts.set(operation.resource, [operation])
    else part.push(operation)
  }
  return parts
}

const shownCharactersMax = 400

const shown = (value: unknown): string => {
  const text = JSON.stringify(value) ?? "nothing"
  return text.length > shownCharactersMax ? `${text.slice(0, shownCharactersMax)}…` : text
}

/** One line on an operation, for reports. */
export const lineOf = <Input, Output>(operation: HistoryOperation<Input, Output>): string => {
  const { client, end, input, outcome, output, resource, start } = operation
  const until = outcome === "info" ? "?" : String(end)
  return `[${start}, ${until}] ${client} ${resource} ${shown(input)}: ${outcome} ${shown(output)}`
}
