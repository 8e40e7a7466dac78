/** What a benchmark line is, and what it has to work with. */
import type { Running, ServeOptions } from "./process.ts"

/** One row of the table. */
export interface Row {
  readonly what: string
  readonly measured: string
  readonly target: string
  /** undefined: there is no target to meet. */
  readonly met: boolean | undefined
}

/** A folder with a mailbox of a million notifications in it, and how to read that. */
export interface LargeStore {
  readonly folder: string
  readonly notifications: number
  /** Path of the mailbox with its reader's secret. */
  readonly shared: string
  readonly token: string
}

export interface Bench {
  /** An empty folder of its own. */
  readonly folder: (name: string) => string
  /** A node on this folder, ready to answer. */
  readonly serve: (folder: string, options?: ServeOptions) => Promise<Running>
  /** uWebSockets.js alone, in a process of its own (peer.ts). */
  readonly peer: () => Promise<Running>
  /** Filled once, by the first line that asks. */
  readonly large: () => Promise<LargeStore>
  /** Says what is going on, on standard error. */
  readonly say: (text: string) => void
}

export interface Line {
  /** By which it is picked on the command line. */
  readonly name: string
  readonly run: (bench: Bench) => Promise<ReadonlyArray<Row>>
}

/** A row whose figure must be at least the target. */
export const atLeast = (what: string, ratio: number, least: number, detail: string): Row => ({
  what,
  measured: `${ratio.toFixed(2)} (${detail})`,
  target: `≥ ${least.toFixed(2)}`,
  met: ratio >= least
})

/** A row without a target. */
export const untold = (what: string, measured: string): Row => ({
  what,
  measured,
  target: "none",
  met: undefined
})

/** A row whose figure must be at most the target. */
export const atMost = (
  what: string,
  figure: number,
  most: number,
  unit: string,
  detail?: string
): Row => ({
  what,
  measured: `${figure.toFixed(1)} ${unit}${detail === undefined ? "" : ` (${detail})`}`,
  target: `≤ ${most} ${unit}`,
  met: figure <= most
})

export const median = (figures: ReadonlyArray<number>): number => {
  const sorted = figures.toSorted((a, b) => a - b)
  const upper = sorted[Math.floor(sorted.length / 2)] ?? Number.NaN
  const lower = sorted[Math.ceil(sorted.length / 2) - 1] ?? Number.NaN
  return (upper + lower) / 2
}

/** Thousands, as `32.5k`. */
export const thousands = (figure: number): string => `${(figure / 1000).toFixed(1)}k`
