/** The record port in memory. See {@link makeMemoryRecords}. */
import { Effect, Layer } from "effect"
import type { RecordEntry, RecordRange, RecordsApi } from "./records.ts"
import { assertExpected, byBytes, type RecordChange, Records } from "./records.ts"

/** As a real store has a bound, so that tests meet it. */
const CHANGES_MAX = 20_000

/** Tables of their own, empty. What they hold survives the systems that run upon them. */
export const makeMemoryRecords = (): RecordsApi => {
  const tables = new Map<string, Map<string, string>>()
  const rowsOf = (table: string): Map<string, string> => {
    const rows = tables.get(table) ?? new Map<string, string>()
    tables.set(table, rows)
    return rows
  }
  const inRange = (key: string, { after, prefix, reverse }: RecordRange): boolean => {
    if (prefix !== undefined && !key.startsWith(prefix)) return false
    if (after === undefined) return true
    const order = byBytes(key, after)
    return reverse === true ? order < 0 : order > 0
  }
  const range = (table: string, bounds: RecordRange): Array<RecordEntry> => {
    const keys = [...rowsOf(table).keys()].filter((key) => inRange(key, bounds)).sort(byBytes)
    if (bounds.reverse === true) keys.reverse()
    return keys.slice(0, bounds.limit).map((key) => ({ key, value: rowsOf(table).get(key) ?? "" }))
  }
  const apply = (changes: ReadonlyArray<RecordChange>): void => {
    for (const { key, table, value } of changes) {
      if (value === null) rowsOf(table).delete(key)
      else rowsOf(table).set(key, value)
    }
  }
  return {
    changesMax: CHANGES_MAX,
    write: (changes) => Effect.sync(() => apply(changes)),
    writeIf: (expected, changes) =>
      Effect.sync(() => {
        assertExpected(expected, changes)
        const holds = expected.every(({ key, table, value }) =>
          (rowsOf(table).get(key) ?? null) === value
        )
        if (holds) apply(changes)
        return holds
      }),
    get: (table, key) => Effect.sync(() => rowsOf(table).get(key)),
    getMany: (table, keys) => Effect.sync(() => keys.map((key) => rowsOf(table).get(key))),
    range: (table, bounds) => Effect.sync(() => range(table, bounds)),
    keys: (table, ranges) =>
      Effect.sync(() => ranges.map((bounds) => range(table, bounds).map(({ key }) => key)))
  }
}

/** Tables in memory that are gone with their layer. */
export const memoryRecords: Layer.Layer<Records> = Layer.sync(Records, makeMemoryRecords)
