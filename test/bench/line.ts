/** The interface of a benchmark line, and the tools that it uses. */
import type { Running, ServeOptions } from "./process.ts"

const reasonCharactersMax = 400

/** One row of the table. */
export interface Row {
  readonly what: string
  readonly measured: string
  readonly target: string
  /** undefined: the row has no target. */
  readonly met: boolean | undefined
  /** It could not be measured; `measured` says why. */
  readonly isMissing?: true
}

/** A folder with a mailbox of a million notifications, and the way to read it. */
export interface LargeStore {
  readonly folder: string
  readonly notifications: number
  /** Path of the mailbox with its shared secret. */
  readonly shared: string
  readonly token: string
}

export interface Bench {
  /** Creates an empty folder. */
  readonly folder: (name: string) => string
  /** Starts a node on this folder and waits until it is ready. */
  readonly serve: (folder: string, options?: ServeOptions) => Promise<Running>
  /** Starts uWebSockets.js alone, in another process (peer.ts). */
  readonly peer: () => Promise<Running>
  /** The large mailbox; the first line that needs it fills it. */
  readonly large: () => Promise<LargeStore>
  /** Prints progress on standard error. */
  readonly say: (text: string) => void
}

export interface Line {
  /** Selects the line on the command line. */
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
export const withoutTarget = (what: string, measured: string): Row => ({
  what,
  measured,
  target: "none",
  met: undefined
})

/** A row that could not be measured, with the reason on one line. */
export const notMeasured = (what: string, error: unknown, target: string): Row => ({
  what,
  measured: `not measured: ${
    String(error).replaceAll(/\s+/g, " ").replaceAll("|", "/").slice(0, reasonCharactersMax)
  }`,
  target,
  met: undefined,
  isMissing: true
})

/** The exit code: 2 when a row could not be measured, 1 when a target was missed. */
export const exitCodeOf = (rows: ReadonlyArray<Row>): number =>
  rows.some(({ isMissing }) => isMissing) ? 2 : rows.some(({ met }) => met === false) ? 1 : 0

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
