/** Who is told of the changes of records, by table. */
import type { RecordChange } from "./records.ts"

/** `key` has another value, or is gone; undefined: any of the table may be. */
export type Changed = (key: string | undefined) => void

export class Watchers {
  private readonly tables = new Map<string, Array<Changed>>()

  readonly watch = (table: string, changed: Changed): void => {
    const known = this.tables.get(table)
    if (known === undefined) this.tables.set(table, [changed])
    else known.push(changed)
  }

  /** Readers see these changes, or soon will. */
  tell(changes: ReadonlyArray<RecordChange>): void {
    if (this.tables.size === 0) return
    for (const { key, table } of changes) {
      const all = this.tables.get(table)
      if (all !== undefined) { for (const changed of all) changed(key) }
    }
  }

  /** Anything may be otherwise now. */
  tellAll(): void {
    for (const all of this.tables.values()) for (const changed of all) changed(undefined)
  }
}
