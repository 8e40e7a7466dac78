/** Which cells of a decision table were decided, and how often. */
import type { AnyBehavior } from "../../actor/index.ts"

/** One cell of a table. */
export interface CellCount {
  /** The tag of the state, and of the message. */
  readonly state: string
  readonly message: string
  /** How often it was decided. */
  readonly count: number
}

/** A report of the cells of one behavior. */
export interface CoverageReport {
  readonly kind: string
  /** All cells, in the order of the table. */
  readonly cells: ReadonlyArray<CellCount>
  /** The cells that were never decided, as `State x Message`. */
  readonly missing: ReadonlyArray<string>
  /** The report for people: one line, and one for each missing cell. */
  readonly text: string
}

/** `State x Message`. */
export const cellName = (state: string, message: string): string => `${state} x ${message}`

/** The report of these cells of a kind. */
export const coverageOf = (kind: string, cells: ReadonlyArray<CellCount>): CoverageReport => {
  const missing = cells.filter(({ count }) => count === 0)
    .map(({ message, state }) => cellName(state, message))
  const text = [
    `${kind}: ${cells.length - missing.length} of ${cells.length} cells`,
    ...missing.map((name) => `  ${name} was never decided`)
  ].join("\n")
  return { kind, cells, missing, text }
}

/** Counts the decided cells of one behavior. */
export class CellCoverage {
  private readonly behavior: AnyBehavior
  private readonly counts = new Map<string, number>()

  constructor(behavior: AnyBehavior) {
    this.behavior = behavior
  }

  add(state: string, message: string): void {
    const name = cellName(state, message)
    this.counts.set(name, (this.counts.get(name) ?? 0) + 1)
  }

  report(): CoverageReport {
    const { kind, table } = this.behavior
    const cells = Object.entries(table).flatMap(([state, row]) =>
      // A row of a table is a record of cells, whose types the behavior has lost.
      Object.keys(row as object).map((message) => ({
        state,
        message,
        count: this.counts.get(cellName(state, message)) ?? 0
      }))
    )
    return coverageOf(kind, cells)
  }
}
