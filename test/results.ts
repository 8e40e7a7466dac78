/**
 * Results of long runs, one JSON document a line: name, runs, faults, operations, lost. A run
 * appends to the file that RESULTS names. `test/long-run.jsonl` has the results of the last runs,
 * and docs/guarantees.md shows them in a table.
 */
import { appendFileSync, mkdirSync } from "node:fs"
import { dirname } from "node:path"

/** One kind of run. */
export interface Shown {
  /** The title of the test. */
  readonly name: string
  /** The number of runs, each with another seed, store or moment. */
  readonly runs: number
  /** Injected faults in all runs. */
  readonly faults: number
  /** Acknowledged operations that were checked afterwards. */
  readonly operations: number
  /** Checked operations whose result was missing. */
  readonly lost: number
}

/** Records the result of a run at its end; a run that lost something has thrown before. */
export const note = (shown: Omit<Shown, "lost">): void => {
  const path = process.env["RESULTS"]
  if (path === undefined || path === "") return
  mkdirSync(dirname(path), { recursive: true })
  appendFileSync(path, `${JSON.stringify({ ...shown, lost: 0 } satisfies Shown)}\n`)
}

/** The results of a file; results of one name are summed. */
export const shownIn = (text: string): ReadonlyArray<Shown> => {
  const all = new Map<string, Shown>()
  for (const line of text.split("\n").filter((one) => one !== "")) {
    // Written by `note`, or by a program with the same format.
    const one = JSON.parse(line) as Shown
    const { faults = 0, lost = 0, operations = 0, runs = 0 } = all.get(one.name) ?? {}
    all.set(one.name, {
      name: one.name,
      runs: runs + one.runs,
      faults: faults + one.faults,
      operations: operations + one.operations,
      lost: lost + one.lost
    })
  }
  return [...all.values()].sort((one, other) => one.name < other.name ? -1 : 1)
}

const number = (n: number): string => n.toLocaleString("en-US")

/** The results as a Markdown table, in the formatter's layout. */
export const tableOf = (shown: ReadonlyArray<Shown>): string => {
  const rows = [
    ["what was tried", "runs", "faults", "operations", "lost"],
    ...shown.map((
      { faults, lost, name, operations, runs }
    ) => [name, ...[runs, faults, operations, lost].map(number)])
  ]
  const widths = [0, 1, 2, 3, 4].map((at) => Math.max(...rows.map((row) => row[at]?.length ?? 0)))
  const line = (cells: ReadonlyArray<string>) => `| ${cells.join(" | ")} |`
  const padded = rows.map((row) => line(row.map((cell, at) => cell.padEnd(widths[at] ?? 0))))
  const rule = line(widths.map((width) => "-".repeat(width)))
  return [padded[0], rule, ...padded.slice(1)].join("\n")
}
