/** The record port in memory. See {@link makeMemoryRecords}. */
import { Effect, Layer } from "effect"
import { assertExpected, type RecordChange, Records, type RecordsApi, RecordTables,
  Watchers } from "../ports/index.ts"

/** A real store has a bound too, so that tests reach it. */
const CHANGES_MAX = 20_000

/** New, empty tables. Their contents survive the systems that run on them. */
export const makeMemoryRecords = (): RecordsApi => {
  const tables = new RecordTables()
  const watchers = new Watchers()
  const apply = (changes: ReadonlyArray<RecordChange>) => {
    watchers.begin(changes)
    tables.apply(changes)
    watchers.end(changes)
  }
  return {
    changesMax: CHANGES_MAX,
    write: (changes) => Effect.sync(() => apply(changes)),
    writeIf: (expected, changes) =>
      Effect.sync(() => {
        assertExpected(expected, changes)
        const holds = expected.every(({ key, table, value }) =>
          (tables.get(table, key) ?? null) === value
        )
        if (holds) apply(changes)
        return holds
      }),
    get: (table, key) => Effect.sync(() => tables.get(table, key)),
    getMany: (table, keys) => Effect.sync(() => tables.getMany(table, keys)),
    range: (table, range) => Effect.sync(() => tables.range(table, range)),
    keys: (table, ranges) => Effect.sync(() => tables.keys(table, ranges)),
    watch: watchers.watch,
    isCurrent: Effect.succeed(true),
    health: Effect.void
  }
}

/** Tables in memory; they end with their layer. */
export const memoryRecords: Layer.Layer<Records> = Layer.sync(Records, makeMemoryRecords)
