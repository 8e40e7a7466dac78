/** Notes each decision of the actors of a run, and checks that each cell is a pure function. */
import { type Address, type AnyBehavior, type Decision, type DecisionContext, keyOf,
  type Tagged } from "../../actor/index.ts"
import { isDeepStrictEqual } from "node:util"
import { CellCoverage, cellName, lineOfParts, partsOf } from "../table/index.ts"

/** The part of the context of a decision that a model repeats. */
export type DecidedContext = Pick<
  DecisionContext,
  "format" | "hint" | "isSignal" | "isSignalDurable" | "nowMs"
>

/** One decision of an actor; its commit may have failed. */
export interface RecordedDecision {
  readonly message: Tagged
  /** The message of the actor's timer or of a signal. */
  readonly isTimer: boolean
  readonly context: DecidedContext
  /** In the moments of the run. */
  readonly at: number
  /** Whether it changes the state or the log. */
  readonly changes: boolean
}

type Cell = (
  state: Tagged,
  message: Tagged,
  context: DecisionContext
) => Decision<unknown, unknown, unknown>

export interface DecisionListener {
  /** The moment of a decision, which orders it among the requests of clients. */
  readonly moment: () => number
  readonly onDecided: (name: string, line: () => string) => void
  readonly onImpure: (what: string) => void
}

export class RecordedDecisions {
  /** By actor. */
  readonly decisions = new Map<string, Array<RecordedDecision>>()
  private readonly coverages = new Map<string, CellCoverage>()
  private readonly listener: DecisionListener

  constructor(listener: DecisionListener) {
    this.listener = listener
  }

  /** The coverage of each kind. */
  get coverage(): ReadonlyMap<string, CellCoverage> {
    return this.coverages
  }

  /** The decisions of an actor, in the order in which they were made. */
  of(actor: Address): ReadonlyArray<RecordedDecision> {
    return this.decisions.get(keyOf(actor)) ?? []
  }

  /** The same behavior, whose decisions are noted. */
  record(behavior: AnyBehavior): AnyBehavior {
    const coverage = this.coverages.get(behavior.kind) ?? new CellCoverage(behavior)
    this.coverages.set(behavior.kind, coverage)
    const recorded = (cell: Cell): Cell => (state, message, context) => {
      const decision = cell(state, message, context)
      coverage.add(state._tag, message._tag)
      this.note(behavior, message, context, decision)
      this.assertPure(behavior, cell, [state, message, context], decision)
      return decision
    }
    // The rows and cells of a table, whose types the behavior has lost.
    const rows = Object.entries(behavior.table as Record<string, Record<string, Cell>>)
    const table = Object.fromEntries(rows.map(([state, row]) => [
      state,
      Object.fromEntries(Object.entries(row).map(([tag, cell]) => [tag, recorded(cell)]))
    ]))
    return Object.assign(Object.create(behavior), { table })
  }

  private note(
    { kind, timerMessage }: AnyBehavior,
    message: Tagged,
    { format, hint, isSignal, isSignalDurable, nowMs, self }: DecisionContext,
    decision: Decision<unknown, unknown, unknown>
  ): void {
    const key = keyOf(self)
    const own = this.decisions.get(key) ?? []
    this.decisions.set(key, own)
    const { items, nextState, removals, removesActor } = decision
    own.push({
      message,
      isTimer: message === timerMessage,
      context: { format, hint, isSignal, isSignalDurable, nowMs },
      at: this.listener.moment(),
      changes: removesActor || [items, nextState, removals].some((part) => part !== undefined)
    })
    this.listener.onDecided(
      kind,
      () => `${key} ${JSON.stringify(message)}: ${lineOfParts(partsOf(decision))}`
    )
  }

  /** A cell that decides otherwise on the same input is not a function of it. */
  private assertPure(
    { kind }: AnyBehavior,
    cell: Cell,
    [state, message, context]: Parameters<Cell>,
    first: Decision<unknown, unknown, unknown>
  ): void {
    if (isDeepStrictEqual(partsOf(first), partsOf(cell(state, message, context)))) return
    const name = cellName(state._tag, message._tag)
    this.listener.onImpure(
      `the cell ${name} of ${kind} decides twice in two ways: use only its arguments`
    )
  }
}
