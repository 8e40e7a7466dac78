/**
 * What long runs have shown: docs/guarantees.md has a table of it. One JSON document a line, in the
 * file that RESULTS names; without it nothing is kept.
 */
import { appendFileSync } from "node:fs"

/** One kind of run. */
export interface Shown {
  /** What was tried. */
  readonly name: string
  /** How often, each upon another seed or another moment. */
  readonly runs: number
  readonly faults: number
  /** Acknowledged operations that were looked for afterwards. */
  readonly operations: number
  /** Of these, not there any more. */
  readonly lost: number
}

/** Keeps what a run has shown, at its end: it threw when anything was lost. */
export const note = (shown: Omit<Shown, "lost">): void => {
  const path = process.env["RESULTS"]
  if (path === undefined || path === "") return
  appendFileSync(path, `${JSON.stringify({ ...shown, lost: 0 } satisfies Shown)}\n`)
}
