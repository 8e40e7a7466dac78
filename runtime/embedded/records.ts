/** The record port on the embedded store. */
import { Effect } from "effect"
import {
  assertExpected,
  type RecordChange,
  type RecordEntry,
  type RecordRange,
  type RecordsApi
} from "../ports/records.ts"
import type { Batch } from "./batch.ts"
import { endOf, recordKey } from "./keys.ts"
import { RECORD_CHANGES_MAX } from "./limits.ts"
import { readSpan } from "./engine.ts"
import type { EmbeddedStore } from "./store.ts"

const entriesOf = (rows: ReadonlyArray<string>, skip: number): Array<RecordEntry> => {
  const entries: Array<RecordEntry> = []
  for (let at = 0; at < rows.length; at += 2) {
    entries.push({ key: (rows[at] ?? "").slice(skip), value: rows[at + 1] ?? "" })
  }
  return entries
}

const least = (one: Buffer, other: Buffer): Buffer => Buffer.compare(one, other) < 0 ? one : other

/** The span of keys of a range. */
const spanOf = (table: string, { after, limit, prefix = "", reverse }: RecordRange) => {
  const from = recordKey(table, prefix)
  const end = endOf(from)
  if (after === undefined) return { gte: from, lt: end, limit }
  const bound = recordKey(table, after)
  if (reverse === true) return { gte: from, lt: least(Buffer.from(bound), end), limit }
  const before = Buffer.compare(Buffer.from(bound), Buffer.from(from)) < 0
  return before ? { gte: from, lt: end, limit } : { gt: bound, lt: end, limit }
}

const apply = (batch: Batch, changes: ReadonlyArray<RecordChange>): void => {
  if (changes.length === 0) return
  batch.commits++
  for (const { key, table, value } of changes) {
    if (value === null) batch.remove(recordKey(table, key))
    else batch.put(recordKey(table, key), value)
  }
}

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

const writing = (store: EmbeddedStore): Pick<RecordsApi, "write" | "writeIf"> => {
  const unwritten = new Unwritten()
  const submit = (
    expected: ReadonlyArray<RecordChange>,
    changes: ReadonlyArray<RecordChange>
  ) =>
    Effect.suspend(() => {
      const by = {}
      let isKept = false
      return store.submit(
        (batch) => {
          assertExpected(expected, changes)
          isKept = expected.every((change) => unwritten.holds(store, change))
          if (!isKept) return
          apply(batch, changes)
          unwritten.add(by, changes)
        },
        () => {
          unwritten.drop(by, changes)
          return isKept
        },
        () => unwritten.drop(by, changes)
      )
    })
  return {
    write: (changes) => Effect.asVoid(submit([], changes)),
    writeIf: submit
  }
}

/**
 * The keys of several ranges. Where nothing begins with a prefix, a look for it still finds what
 * comes next: the ranges before that are known to be empty, and are not looked for.
 */
const keysOf = async (
  store: EmbeddedStore,
  table: string,
  ranges: ReadonlyArray<RecordRange>
): Promise<ReadonlyArray<ReadonlyArray<string>>> => {
  const all = recordKey(table, "")
  const tableEnd = endOf(all)
  const found: Array<ReadonlyArray<string>> = []
  /** There is no key from `from` up to `to`. */
  let gap: { readonly from: Buffer; readonly to: Buffer } | undefined
  for (const range of ranges) {
    const { limit, prefix, reverse } = range
    const span = spanOf(table, range)
    // No key holds U+0000: after a key comes that key with one.
    const from = Buffer.from(span.gte ?? `${span.gt}\u0000`)
    const isEmpty = gap !== undefined && reverse !== true &&
      Buffer.compare(gap.from, from) <= 0 && Buffer.compare(gap.to, span.lt) >= 0
    if (limit <= 0 || isEmpty) {
      found.push([])
      continue
    }
    const isOpen = reverse !== true && prefix !== undefined
    const open = isOpen ? { ...span, lt: tableEnd } : span
    const rows = await readSpan(store.database, open, reverse === true)
    const keys = entriesOf(rows, all.length).map(({ key }) => key)
    const fitting = isOpen ? keys.filter((key) => key.startsWith(prefix)) : keys
    if (isOpen && fitting.length === 0) {
      const next = keys[0]
      gap = { from, to: next === undefined ? tableEnd : Buffer.from(recordKey(table, next)) }
    }
    found.push(fitting)
  }
  return found
}

/** The record port upon an open store. */
export const makeRecords = (store: EmbeddedStore): RecordsApi => ({
  changesMax: RECORD_CHANGES_MAX,
  ...writing(store),
  get: (table, key) => store.reading(() => store.database().getText(recordKey(table, key))),
  getMany: (table, keys) =>
    store.reading(() => store.database().getTexts(keys.map((key) => recordKey(table, key)))),
  range: (table, range) =>
    store.reading<ReadonlyArray<RecordEntry>>(() => {
      if (range.limit <= 0) return []
      const skip = recordKey(table, "").length
      const rows = readSpan(store.database, spanOf(table, range), range.reverse === true)
      return rows instanceof Promise
        ? rows.then((all) => entriesOf(all, skip))
        : entriesOf(rows, skip)
    }),
  keys: (table, ranges) => store.reading(() => keysOf(store, table, ranges))
})
