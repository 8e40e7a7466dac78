/**
 * Pages of customers without HTTP, in their own process. It compares, in turns: pages by agemin
 * through the planner from cached and from stored rows, RocksDB's own iterator for as many rows,
 * and SQLite (node:sqlite, if available) with an index on the same rows. First pages are read
 * repeatedly, other pages once each. Prints JSON.
 * `node tables.js <folder of a loaded store>`
 */
import { Effect } from "effect"
import { filterOf, spanOf } from "../../http/query-engine/condition.ts"
import { runQuery } from "../../http/query-engine/query-run.ts"
import { type RowCache, RowCaches } from "../../http/query-engine/row-cache.ts"
import { customersTable } from "../../http/resources/customers/customer-table.ts"
import { embedded } from "../../runtime/embedded/index.ts"
import { Records, type RecordsApi } from "../../runtime/index.ts"
import { median } from "./line.ts"

const rounds = 300
const turn = 30
const limit = 100
const ages = [21, 60, 85, 89, 110]

/** The used part of node:sqlite; the oldest supported Node has no types for it. */
interface Sqlite {
  readonly DatabaseSync: new(path: string) => {
    readonly exec: (sql: string) => void
    readonly prepare: (sql: string) => {
      readonly run: (...values: ReadonlyArray<unknown>) => unknown
      readonly all: (...values: ReadonlyArray<unknown>) => ReadonlyArray<unknown>
    }
  }
}

/** Times of one call, ms. */
export interface Timing {
  readonly medianMs: number
  readonly p99Ms: number
  /** Mean processor time. */
  readonly cpuMs: number
}

export interface Compared {
  readonly own: Timing
  readonly sqlite: Timing | undefined
}

export interface Tables {
  readonly rows: number
  readonly iterator: Timing
  /** Time until the node had cached the rows, and their approximate memory. */
  readonly cache: { readonly seconds: number; readonly mb: number }
  readonly pages: ReadonlyArray<{
    readonly age: number
    readonly first: Compared
    readonly elsewhere: Compared
    /** Pages elsewhere, by a node without cached rows. */
    readonly stored: Timing
  }>
}

/** Distinct ids, spread evenly over the table. */
const placeOf = (round: number, rows: number): string =>
  `c${String(Math.floor((round + 0.5) * rows * 0.9 / rounds)).padStart(7, "0")}`

const timingOf = (times: ReadonlyArray<number>, cpuUs: number): Timing => {
  const sorted = times.toSorted((a, b) => a - b)
  return {
    medianMs: median(sorted),
    p99Ms: sorted[Math.floor(sorted.length * 0.99)] ?? 0,
    cpuMs: cpuUs / 1000 / times.length
  }
}

type Once = (round: number) => unknown

/** Runs each of them this many times, in turns. */
const timings = async (...all: ReadonlyArray<Once>): Promise<ReadonlyArray<Timing>> => {
  const measured = all.map((once) => ({ once, times: new Array<number>(), cpuUs: 0 }))
  for (let from = 0; from < rounds; from += turn) {
    for (const one of measured) {
      const before = process.cpuUsage()
      for (let round = from; round < from + turn; round++) {
        const startedMs = performance.now()
        await one.once(round)
        one.times.push(performance.now() - startedMs)
      }
      const { system, user } = process.cpuUsage(before)
      one.cpuUs += system + user
    }
  }
  return measured.map(({ cpuUs, times }) => timingOf(times, cpuUs))
}

const timing = async (once: Once): Promise<Timing> => {
  const [only] = await timings(once)
  if (only === undefined) throw new Error("nothing was measured")
  return only
}

const pageOf = (records: RecordsApi, cache: RowCache | undefined, age: number) => {
  const least = { _tag: "where", field: "age", op: "ge", value: String(age) } as const
  const query = {
    table: customersTable,
    filter: filterOf(customersTable, least),
    span: spanOf(least, "age", { low: 0, high: customersTable.index?.max ?? 0 }),
    order: { by: customersTable.key, descending: false },
    limit
  }
  return (after: string) => {
    const cursor = after === "" ? undefined : { key: after }
    return Effect.runPromise(runQuery(records, { ...query, after: cursor }, cache))
  }
}

/** All rows in SQLite, in memory; undefined if it is unavailable. */
const sqliteOf = async (records: RecordsApi) => {
  // Node returns its own modules by name.
  const sqlite = process.getBuiltinModule("node:sqlite") as unknown as Sqlite | undefined
  const database = sqlite === undefined ? undefined : new sqlite.DatabaseSync(":memory:")
  let rows = 0
  database?.exec(
    "create table customers (id text primary key, name text, age integer, " +
      "email text, city text, country text) without rowid; begin"
  )
  const insert = database?.prepare("insert into customers values (?, ?, ?, ?, ?, ?)")
  let after = ""
  for (;;) {
    const some = await Effect.runPromise(
      records.range(customersTable.name, { after, limit: 10_000 })
    )
    for (const { key, value } of some) {
      const row = customersTable.parse(value)
      insert?.run(key, ...customersTable.fields.map(({ name }) => row[name] ?? null))
    }
    rows += some.length
    const last = some.at(-1)
    if (last === undefined) break
    after = last.key
  }
  database?.exec("commit; create index ages on customers (age, id); analyze")
  const query = "select * from customers where age >= ? and id > ? order by id limit 100"
  const page = database?.prepare(query)
  return {
    rows,
    page: page === undefined ? undefined : (age: number, after: string) => page.all(age, after)
  }
}

/** Fills the row cache, as a node does after its first query. */
const fillCache = async (records: RecordsApi) => {
  const cache = new RowCaches(records).of(customersTable)
  if (cache === undefined) throw new Error("no customers are cached")
  const startedMs = performance.now()
  await pageOf(records, cache, 0)("")
  while (!cache.isFull) await new Promise((resolve) => setTimeout(resolve, 20))
  const seconds = (performance.now() - startedMs) / 1000
  return { cache, seconds, mb: cache.bytes / 1e6 }
}

const measure = async (records: RecordsApi): Promise<Tables> => {
  const { cache, mb, seconds } = await fillCache(records)
  const { page, rows } = await sqliteOf(records)
  const iterator = await timing((round) =>
    Effect.runPromise(records.range(customersTable.name, { limit, after: placeOf(round, rows) }))
  )
  const pages: Array<Tables["pages"][number]> = []
  for (const age of ages) {
    const own = pageOf(records, cache, age)
    const stored = pageOf(records, undefined, age)
    const compared = async (place: (round: number) => string): Promise<Compared> => {
      const peer = page === undefined ? [] : [(round: number) => page(age, place(round))]
      const [first, sqlite] = await timings((round) => own(place(round)), ...peer)
      if (first === undefined) throw new Error("nothing was measured")
      return { own: first, sqlite }
    }
    const elsewhere = await compared((round) => placeOf(round, rows))
    pages.push({
      age,
      first: await compared(() => ""),
      elsewhere,
      stored: await timing((round) => stored(placeOf(round, rows)))
    })
  }
  return { rows, iterator, cache: { seconds, mb }, pages }
}

const [folder = ""] = process.argv.slice(2)
const program = Effect.flatMap(Records, (records) => Effect.promise(() => measure(records)))
const tables = await Effect.runPromise(Effect.provide(program, embedded(folder)))
process.stdout.write(`${JSON.stringify(tables)}\n`)
