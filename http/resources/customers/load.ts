/** A load as it is stored: a whole file of customers on its way into the table. */
import type { RecordChange } from "../../../runtime/index.ts"
import type { Format } from "./customer-files.ts"

export const loadsTable = "loads"

/** Ids of those that are not at their end. */
export const pendingLoads = "loads-pending"

export const loadPath = (id: string): string => `/loads/${id}`

export const isLoadId = (text: string): boolean => /^[A-Za-z0-9_-]{16,64}$/.test(text)

export interface RowProblem {
  /** Counts from 1; the first line of a CSV file is not a row. */
  readonly row: number
  readonly detail: string
}

export interface CustomerLoad {
  readonly state: "pending" | "done"
  readonly format: Format
  /** The file, for as long as it is needed. */
  readonly blob: string
  /** Rows of the file; those that were passed over are among them. */
  readonly rows: number
  readonly skipped: number
  readonly problems: ReadonlyArray<RowProblem>
  /** Rows of the file that have been dealt with. */
  readonly at: number
  readonly created: number
  readonly replaced: number
  /** ms since the epoch. */
  readonly startedMs: number
  readonly touchedMs: number
}

// This service's own text.
export const parseLoad = (value: string): CustomerLoad => JSON.parse(value) as CustomerLoad

/** What writes a load as it stands. */
export const loadChanges = (id: string, load: CustomerLoad): ReadonlyArray<RecordChange> => [
  { table: loadsTable, key: id, value: JSON.stringify(load) },
  { table: pendingLoads, key: id, value: load.state === "pending" ? "" : null }
]
