/** What clients did to resources, and the answers that they received: the input of the checker. */

/**
 * `ok`: answered, so it took effect between its start and its end. `fail`: refused, so it never
 * has an effect. `info`: nobody knows; it may take effect at any time after its start, or never.
 */
export type Outcome = "ok" | "fail" | "info"

/** One operation. Times are of one clock, in any unit; an `info` has no end that matters. */
export interface Operation<Input, Output> {
  readonly client: string
  /** Histories are checked resource by resource. */
  readonly resource: string
  /** What was asked; its `kind` is what reports and counts go by. */
  readonly input: Input
  /** What was answered: of an `ok` always; of an `info` where it is known by other means. */
  readonly output?: Output | undefined
  readonly start: number
  readonly end: number
  readonly outcome: Outcome
  /**
   * Those that have one can only have taken effect in this order, as their answers tell: no other
   * order need be tried. Of an `ok` only, and given by a model's `settle`.
   */
  readonly rank?: number
}

/** What a resource is, one operation after the other. */
export interface Model<State, Input extends { readonly kind: string }, Output> {
  readonly initial: State
  /**
   * The states that the operation may leave behind, none when it cannot have been answered so in
   * this state. Without an output it is not known what was answered.
   */
  readonly step: (state: State, input: Input, output: Output | undefined) => ReadonlyArray<State>
  /** The same for equal states only. */
  readonly keyOf: (state: State) => string
  /** Narrows unknown outcomes by what the whole history of the resource tells of them. */
  readonly settle?: (
    operations: ReadonlyArray<Operation<Input, Output>>
  ) => ReadonlyArray<Operation<Input, Output>>
}

/** The operations by resource, in the order in which the resources were first asked. */
export const byResource = <Input, Output>(
  operations: Iterable<Operation<Input, Output>>
): ReadonlyMap<string, ReadonlyArray<Operation<Input, Output>>> => {
  const parts = new Map<string, Array<Operation<Input, Output>>>()
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
export const lineOf = <Input, Output>(operation: Operation<Input, Output>): string => {
  const { client, end, input, outcome, output, resource, start } = operation
  const until = outcome === "info" ? "?" : String(end)
  return `[${start}, ${until}] ${client} ${resource} ${shown(input)}: ${outcome} ${shown(output)}`
}
