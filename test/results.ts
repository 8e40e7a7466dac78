/**
 * What long runs have shown, one JSON document a line: name, runs, faults, operations, lost. A
 * run appends to the file that RESULTS names; `test/long-run.jsonl` is what is kept of the last,
 * and docs/guarantees.md has a table of it.
 */
import { appendFileSync, mkdirSync } from "node:fs"
import { dirname } from "node:path"

/** One kind of run. */
export interface Shown {
  /** What was tried. */
  readonly name: string
  /** How often, each on another seed, store or moment. */
  readonly runs: number
  /** Faults that were made in all runs. */
  readonly faults: number
  /** Acknowledged operations that were looked for afterwards. */
  readonly operations: number
  /** Of these, not there any more. */
  readonly lost: number
}

/** Keeps what a run has shown, at its end; whoever has lost something throws before. */
export const note = (shown: Omit<Shown, "lost">): void => {
  const path = process.env["RESULTS"]
  if (path === undefined || path === "") return
  mkdirSync(dirname(path), { recursive: true })
  appendFileSync(path, `${JSON.stringify({ ...shown, lost: 0 } satisfies Shown)}\n`)
}

/** The lines of a file of results; those of one name are added up. */
export const shownIn = (text: string): ReadonlyArray<Shown> => {
  const all = new Map<string, Shown>()
  for (const line of text.split("\n").filter((one) => one !== "")) {
    // Written by `note`, or by who keeps the same form.
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

/** The table of a page, as its formatter leaves it. */
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
