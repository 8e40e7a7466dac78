/** The record port on the embedded store. */
import { Effect } from "effect"
import { assertExpected, type RecordChange, type RecordsApi } from "../ports/records.ts"
import { Watchers } from "../ports/watchers.ts"
import type { WriteBatch } from "./batch.ts"
import { recordKey } from "./keys.ts"
import { recordChangesMax } from "./limits.ts"
import { heldIn } from "./held.ts"
import { ReadCache } from "./read-cache.ts"
import type { EmbeddedStore } from "./store.ts"

const apply = (batch: WriteBatch, changes: ReadonlyArray<RecordChange>): void => {
  if (changes.length === 0) return
  batch.commits++
  for (const { key, table, value } of changes) {
    if (value === null) batch.remove(recordKey(table, key))
    else batch.put(recordKey(table, key), value)
  }
}

const tablesOf = (changes: ReadonlyArray<RecordChange>): ReadonlySet<string> =>
  new Set(changes.map(({ table }) => table))

/**
 * What the group under way changes and the database does not show yet. A group is prepared when all
 * groups before it are durable, so that the rest of what was changed can be read.
 */
class Unwritten {
  private readonly values = new Map<string, { readonly value: string | null; by: object }>()

  add(by: object, changes: ReadonlyArray<RecordChange>): void {
    for (const { key, table, value } of changes) {
      this.values.set(recordKey(table, key), { value, by })
    }
  }

  drop(by: object, changes: ReadonlyArray<RecordChange>): void {
    for (const { key, table } of changes) {
      const name = recordKey(table, key)
      if (this.values.get(name)?.by === by) this.values.delete(name)
    }
  }

  holds(store: EmbeddedStore, { key, table, value }: RecordChange): boolean {
    const name = recordKey(table, key)
    const unwritten = this.values.get(name)
    const known = unwritten === undefined ? store.database().getText(name) : unwritten.value
    return (known ?? null) === value
  }
}

const writing = (
  store: EmbeddedStore,
  { begin, end }: Pick<Watchers, "begin" | "end">
): Pick<RecordsApi, "write" | "writeIf"> => {
  const unwritten = new Unwritten()
  const submit = (
    expected: ReadonlyArray<RecordChange>,
    changes: ReadonlyArray<RecordChange>
  ) =>
    Effect.suspend(() => {
      const by = {}
      let isKept = false
      const done = () => {
        if (!isKept) return
        unwritten.drop(by, changes)
        end(changes)
      }
      return store.submit(
        (batch) => {
          assertExpected(expected, changes)
          isKept = expected.every((change) => unwritten.holds(store, change))
          if (!isKept) return
          apply(batch, changes)
          unwritten.add(by, changes)
          begin(changes)
        },
        () => {
          done()
          return isKept
        },
        done
      )
    })
  return {
    write: (changes) => Effect.asVoid(submit([], changes)),
    writeIf: submit
  }
}

/** The record port upon an open store. */
export const makeRecords = (store: EmbeddedStore): RecordsApi => {
  const held = new ReadCache(heldIn(store.database))
  const watchers = new Watchers()
  store.onReopened(() => {
    held.clear()
    watchers.all()
  })
  const telling = {
    begin: (changes: ReadonlyArray<RecordChange>) => {
      for (const table of tablesOf(changes)) held.changing(table)
      watchers.begin(changes)
    },
    end: (changes: ReadonlyArray<RecordChange>) => {
      for (const table of tablesOf(changes)) held.changed(table)
      watchers.end(changes)
    }
  }
  return {
    changesMax: recordChangesMax,
    ...writing(store, telling),
    get: (table, key) => store.reading(() => held.get(table, key)),
    getMany: (table, keys) => store.reading(() => held.getMany(table, keys)),
    range: (table, range) => store.reading(() => held.range(table, range)),
    keys: (table, ranges) => store.reading(() => held.keys(table, ranges)),
    watch: watchers.watch,
    isCurrent: Effect.succeed(true),
    // The storage port tells of the store that both are upon.
    health: Effect.void
  }
}
