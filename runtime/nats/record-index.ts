/**
 * The keys of a part of the records, in order: of a table, or of those of a table that begin with
 * the same `<part>/`. Such a part is listed when it is first asked for and then follows the
 * stream; those not used lately are given up.
 */
import { byBytes } from "../ports/records.ts"
import type { RecordRange } from "../ports/records.ts"
import { INDEX_KEYS_MAX } from "./limits.ts"
import { SortedKeys } from "./sorted-keys.ts"

export interface Change {
  readonly key: string
  readonly seq: number
  readonly isGone: boolean
}

export class Index {
  private keys: SortedKeys | undefined
  /** Changes that came while the keys were being listed. */
  private early: Array<Change> = []

  get size(): number {
    return this.keys?.size ?? 0
  }

  get isListed(): boolean {
    return this.keys !== undefined
  }

  /** `seq`: everything up to it is in the listing. */
  list(keys: ReadonlyArray<string>, seq: number): void {
    this.keys = new SortedKeys(keys)
    for (const change of this.early) if (change.seq > seq) this.apply(change)
    this.early = []
  }

  apply(change: Change): void {
    const { keys } = this
    if (keys === undefined) this.early.push(change)
    else if (change.isGone) keys.remove(change.key)
    else keys.add(change.key)
  }

  /** The next keys of a range, at most `count`, after `after`. */
  page({ prefix = "", reverse }: RecordRange, after: string | undefined, count: number) {
    const page: Array<string> = []
    if (this.keys === undefined) return page
    const from = reverse === true
      // No text stands after all that begin with the prefix, so it is looked for.
      ? this.keys.downwards((key) =>
        (after !== undefined && byBytes(key, after) >= 0) ||
        (byBytes(key, prefix) > 0 && !key.startsWith(prefix))
      )
      : this.keys.upwards((key) =>
        byBytes(key, prefix) >= 0 && (after === undefined || byBytes(key, after) > 0)
      )
    for (const key of from) {
      if (page.length >= count || !key.startsWith(prefix)) break
      page.push(key)
    }
    return page
  }
}

/** The indexes that are kept, by table and part. */
export class Indexes {
  private readonly indexes = new Map<string, Index>()

  private static nameOf(table: string, part: string | undefined): string {
    return part === undefined ? table : `${table}/${part}`
  }

  get(table: string, part: string | undefined): Index | undefined {
    const name = Indexes.nameOf(table, part)
    const index = this.indexes.get(name)
    if (index === undefined) return undefined
    this.indexes.delete(name)
    this.indexes.set(name, index)
    return index
  }

  add(table: string, part: string | undefined): Index {
    const index = new Index()
    this.indexes.set(Indexes.nameOf(table, part), index)
    return index
  }

  drop(table: string, part: string | undefined): void {
    this.indexes.delete(Indexes.nameOf(table, part))
  }

  clear(): void {
    this.indexes.clear()
  }

  /** Gives up those used least lately while there are too many keys. */
  shrink(): void {
    let keys = 0
    for (const index of this.indexes.values()) keys += index.size
    for (const [name, index] of this.indexes) {
      if (keys <= INDEX_KEYS_MAX || this.indexes.size === 1) return
      if (!index.isListed) continue
      keys -= index.size
      this.indexes.delete(name)
    }
  }

  apply(table: string, change: Change): void {
    this.indexes.get(table)?.apply(change)
    const slash = change.key.indexOf("/")
    if (slash >= 0) this.indexes.get(`${table}/${change.key.slice(0, slash)}`)?.apply(change)
  }
}
