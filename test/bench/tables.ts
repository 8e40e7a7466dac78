/**
 * Pages of customers without HTTP, in a process of its own: pages by agemin through the planner,
 * RocksDB's own iterator for as many rows, and SQLite (node:sqlite, where this Node has it) with an
 * index on the same rows. First pages are read again and again; pages elsewhere are each read
 * once. Prints JSON. `node tables.js <folder of a loaded store>`
 */
import { Effect } from "effect"
import { customers } from "../../http/customers/table.ts"
import { filterOf, spanOf } from "../../http/queries/condition.ts"
import { runQuery } from "../../http/queries/run.ts"
import { embedded } from "../../runtime/embedded/index.ts"
import { Records, type RecordsApi } from "../../runtime/index.ts"
import { median } from "./line.ts"

const rounds = 300
const limit = 100
const ages = [21, 60, 85, 89, 110]

/** The part of node:sqlite that is used; its types are not those of the oldest Node. */
interface Sqlite {
  readonly DatabaseSync: new(path: string) => {
    readonly exec: (sql: string) => void
    readonly prepare: (sql: string) => {
      readonly run: (...values: ReadonlyArray<unknown>) => unknown
      readonly all: (...values: ReadonlyArray<unknown>) => ReadonlyArray<unknown>
    }
  }
}

/** Median and 99th percentile, ms. */
export interface Timing {
  readonly medianMs: number
  readonly p99Ms: number
}

export interface Compared {
  readonly own: Timing
  readonly sqlite: Timing | undefined
}

export interface Tables {
  readonly rows: number
  readonly iterator: Timing
  readonly pages: ReadonlyArray<{
    readonly age: number
    readonly first: Compared
    readonly elsewhere: Compared
  }>
}

/** Ids evenly over the table, each another one. */
const placeOf = (round: number, rows: number): string =>
  `c${String(Math.floor((round + 0.5) * rows * 0.9 / rounds)).padStart(7, "0")}`

const timing = async (once: (round: number) => unknown): Promise<Timing> => {
  const times: Array<number> = []
  for (let round = 0; round < rounds; round++) {
    const startedMs = performance.now()
    await once(round)
    times.push(performance.now() - startedMs)
  }
  const sorted = times.toSorted((a, b) => a - b)
  return { medianMs: median(sorted), p99Ms: sorted[Math.floor(sorted.length * 0.99)] ?? 0 }
}

const pageOf = (records: RecordsApi, age: number) => {
  const least = { _tag: "where", field: "age", op: "ge", value: String(age) } as const
  const asked = {
    table: customers,
    filter: filterOf(customers, least),
    span: spanOf(least, "age", { low: 0, high: customers.index?.max ?? 0 }),
    order: { by: customers.key, descending: false },
    limit
  }
  return (after: string) => {
    const cursor = after === "" ? undefined : { key: after }
    return Effect.runPromise(runQuery(records, { ...asked, after: cursor }))
  }
}

/** All rows in SQLite, in memory; undefined where there is none. */
const sqliteOf = async (records: RecordsApi) => {
  // Node gives any of its modules by name.
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
    const some = await Effect.runPromise(records.range(customers.name, { after, limit: 10_000 }))
    for (const { key, value } of some) {
      const row = customers.parse(value)
      insert?.run(key, ...customers.fields.map(({ name }) => row[name] ?? null))
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

const measure = Effect.gen(function*() {
  const records = yield* Records
  const { page, rows } = yield* Effect.promise(() => sqliteOf(records))
  const read = (round: number) =>
    Effect.runPromise(records.range(customers.name, { limit, after: placeOf(round, rows) }))
  const iterator = yield* Effect.promise(() => timing(read))
  const pages: Array<Tables["pages"][number]> = []
  for (const age of ages) {
    const own = pageOf(records, age)
    const compared = async (place: (round: number) => string): Promise<Compared> => ({
      own: await timing((round) => own(place(round))),
      sqlite: page === undefined ? undefined : await timing((round) => page(age, place(round)))
    })
    const elsewhere = yield* Effect.promise(() => compared((round) => placeOf(round, rows)))
    pages.push({ age, first: yield* Effect.promise(() => compared(() => "")), elsewhere })
  }
  return { rows, iterator, pages } satisfies Tables
})

const [folder = ""] = process.argv.slice(2)
const tables = await Effect.runPromise(Effect.provide(measure, embedded(folder)))
process.stdout.write(`${JSON.stringify(tables)}\n`)
