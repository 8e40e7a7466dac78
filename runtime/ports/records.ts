/**
 * The record port: plain ordered tables beside the actors, for indexes and for what is queried
 * rather than addressed. The contract is the suite `test/suites/records.ts`.
 */
import { Context } from "effect"
import type { Effect } from "effect"
import type { StorageFailure } from "../errors.ts"

export interface RecordChange {
  /** `[a-z][a-z-]*`. */
  readonly table: string
  /** Any text without U+0000; compared by its UTF-8 bytes. */
  readonly key: string
  /** null removes. */
  readonly value: string | null
}

export interface RecordEntry {
  readonly key: string
  readonly value: string
}

export interface RecordRange {
  /** Only keys that begin so. */
  readonly prefix?: string
  /** Only keys after this one (before it, when `reverse`). */
  readonly after?: string
  readonly reverse?: boolean
  readonly limit: number
}

export interface RecordsApi {
  /** All of the changes, durable, or none. */
  readonly write: (changes: ReadonlyArray<RecordChange>) => Effect.Effect<void, StorageFailure>
  readonly get: (table: string, key: string) => Effect.Effect<string | undefined, StorageFailure>
  readonly range: (
    table: string,
    range: RecordRange
  ) => Effect.Effect<ReadonlyArray<RecordEntry>, StorageFailure>
}

export class Records extends Context.Service<Records, RecordsApi>()("restante/runtime/Records") {}
