/** The record port on the embedded store. */
import type { RecordEntry, RecordRange, RecordsApi } from "../ports/records.ts"
import { endOf, recordKey } from "./keys.ts"
import { getText, readSpan } from "./rocksdb.ts"
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

/** The record port upon an open store. */
export const makeRecords = (store: EmbeddedStore): RecordsApi => ({
  write: (changes) =>
    store.submit((batch) => {
      if (changes.length === 0) return
      batch.commits++
      for (const { key, table, value } of changes) {
        if (value === null) batch.remove(recordKey(table, key))
        else batch.put(recordKey(table, key), value)
      }
    }, () => undefined),
  get: (table, key) => store.reading(() => getText(store.database(), recordKey(table, key))),
  range: (table, range) =>
    store.reading<ReadonlyArray<RecordEntry>>(() => {
      if (range.limit <= 0) return []
      const skip = recordKey(table, "").length
      const rows = readSpan(store.database, spanOf(table, range), range.reverse === true)
      return rows instanceof Promise
        ? rows.then((all) => entriesOf(all, skip))
        : entriesOf(rows, skip)
    })
})
