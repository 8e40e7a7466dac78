/** Who is told of the changes of records, by table. */
import type { RecordChange } from "./records.ts"

export interface Watcher {
  /** Some readers may see another value of the key from now on, until `changed` is told of it. */
  readonly changing: (key: string) => void
  /** What readers see of the key stays as it is now. undefined: any of the table may be another. */
  readonly changed: (key: string | undefined) => void
}

export class Watchers {
  private readonly tables = new Map<string, Array<Watcher>>()

  readonly watch = (table: string, watcher: Watcher): void => {
    const known = this.tables.get(table)
    if (known === undefined) this.tables.set(table, [watcher])
    else known.push(watcher)
  }

  /** Before these changes can be seen by anybody. */
  begin(changes: ReadonlyArray<RecordChange>): void {
    this.each(changes, ({ changing }, key) => {
      changing(key)
    })
  }

  /** When they are seen by everybody, or by nobody. */
  end(changes: ReadonlyArray<RecordChange>): void {
    this.each(changes, ({ changed }, key) => {
      changed(key)
    })
  }

  /** Anything may be otherwise now. */
  all(): void {
    for (const watchers of this.tables.values()) {
      for (const { changed } of watchers) changed(undefined)
    }
  }

  private each(
    changes: ReadonlyArray<RecordChange>,
    tell: (watcher: Watcher, key: string) => void
  ): void {
    if (this.tables.size === 0) return
    for (const { key, table } of changes) {
      for (const watcher of this.tables.get(table) ?? []) tell(watcher, key)
    }
  }
}
