/**
 * The view port: a node's copy of the records that a cluster shares, ordered by key. The view is
 * a cache: the node can fill it again, so writes are not flushed. The contract is the suite
 * `test/suites/view.ts`.
 */
import type { Effect, Scope } from "effect"
import { RecordTables } from "./record-table.ts"
import type { RecordChange, RecordsInMemory } from "./records.ts"

/** Reads throw or reject while the view is corrupted or being cleared. */
export interface ViewApi extends RecordsInMemory {
  /** The note of the last write; undefined after `clear`. */
  readonly note: () => string | undefined
  /**
   * Writes all changes and the note, or nothing. The caller awaits each write before the next. A
   * crash may lose the latest writes, each as a whole.
   */
  readonly write: (changes: ReadonlyArray<RecordChange>, note: string) => Promise<void>
  /** Deletes everything, corrupted data too. */
  readonly clear: () => Promise<void>
}

/** Opens a view until the scope closes. */
export type OpenView<E = never> = Effect.Effect<ViewApi, E, Scope.Scope>

class MemoryView extends RecordTables implements ViewApi {
  private lastNote: string | undefined = undefined

  note(): string | undefined {
    return this.lastNote
  }

  async write(changes: ReadonlyArray<RecordChange>, note: string): Promise<void> {
    this.apply(changes)
    this.lastNote = note
  }

  override async clear(): Promise<void> {
    super.clear()
    this.lastNote = undefined
  }
}

/** A view in memory; the process loses it when it ends. */
export const makeMemoryView = (): ViewApi => new MemoryView()
