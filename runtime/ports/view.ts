/**
 * The view port: a node's own copy of the records that a cluster shares, in the order of their
 * keys. It is a cache that can be filled again, so it may be lost at any time, and nothing in it
 * is flushed. The contract is the suite `test/suites/view.ts`.
 */
import type { Effect, Scope } from "effect"
import { RecordTables } from "./record-table.ts"
import type { RecordChange, RecordsInMemory } from "./records.ts"

/** Whatever is read throws or rejects where the copy is corrupted, or is being cleared. */
export interface ViewApi extends RecordsInMemory {
  /** What was noted with the last write that is still there; undefined after `clear`. */
  readonly note: () => string | undefined
  /**
   * All of the changes and the note, or none. One is under way at a time. Of several writes a
   * crash leaves the first ones, each whole.
   */
  readonly write: (changes: ReadonlyArray<RecordChange>, note: string) => Promise<void>
  /** Forgets everything, corruption too. */
  readonly clear: () => Promise<void>
}

/** Opens a view for as long as the scope. */
export type OpenView<E = never> = Effect.Effect<ViewApi, E, Scope.Scope>

/** A view in memory: gone with its node. */
export const makeMemoryView = (): ViewApi => {
  const tables = new RecordTables()
  let noted: string | undefined
  return {
    note: () => noted,
    write: async (changes, note) => {
      tables.apply(changes)
      noted = note
    },
    clear: async () => {
      tables.clear()
      noted = undefined
    },
    get: (table, key) => tables.get(table, key),
    getMany: (table, keys) => tables.getMany(table, keys),
    range: (table, range) => tables.range(table, range),
    keys: (table, ranges) => tables.keys(table, ranges)
  }
}
