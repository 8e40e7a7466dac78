/** A load: a file of customers that the service writes into the table. */
import { Effect } from "effect"
import type { RecordChange, StorageFailure } from "../../../runtime/index.ts"
import type { Service } from "../../pipeline/index.ts"
import type { FileFormat } from "./customer-files.ts"

export const loadsTable = "loads"

/** The ids of pending loads. */
export const pendingLoads = "loads-pending"

export const loadPath = (id: string): string => `/loads/${id}`

export interface RowProblem {
  /** Counts from 1; the first line of a CSV file is not a row. */
  readonly row: number
  readonly detail: string
}

export interface CustomerLoad {
  readonly state: "pending" | "done"
  readonly format: FileFormat
  /** Identifies the request, if it has an Idempotency-Key. */
  readonly fingerprint?: string
  /** The blob of the file, until the load is done. */
  readonly blob: string
  /** Rows of the file, with the skipped ones. */
  readonly rows: number
  readonly skipped: number
  readonly problems: ReadonlyArray<RowProblem>
  /** Rows of the file that are processed. */
  readonly at: number
  readonly created: number
  readonly replaced: number
  /** ms since the epoch. */
  readonly startedMs: number
  readonly touchedMs: number
}

// Only this service writes these records.
export const parseLoad = (value: string): CustomerLoad => JSON.parse(value) as CustomerLoad

const blobPrefix = "load="

/** The id of the blob with the file of a load, as one upload stores it. */
export const loadBlob = (id: string, upload: string): string => `${blobPrefix}${id}=${upload}`

/** Whether the blob is the file of a load. */
export const isLoadBlob = (blobId: string): boolean => blobId.startsWith(blobPrefix)

/** Whether a load needs the blob; one that is done has removed its file. */
export const isBlobOfPendingLoad = (
  { records }: Pick<Service, "records">,
  blobId: string
): Effect.Effect<boolean, StorageFailure> =>
  Effect.map(
    records.get(loadsTable, blobId.slice(blobPrefix.length).split("=", 1)[0] ?? ""),
    (value) => {
      if (value === undefined) return false
      const { blob, state } = parseLoad(value)
      return state === "pending" && blob === blobId
    }
  )

/** Writes a load. */
export const loadChanges = (id: string, load: CustomerLoad): ReadonlyArray<RecordChange> => [
  { table: loadsTable, key: id, value: JSON.stringify(load) },
  load.state === "pending"
    ? { table: pendingLoads, key: id, value: "" }
    : { table: pendingLoads, key: id, value: null, markerExpires: true }
]
