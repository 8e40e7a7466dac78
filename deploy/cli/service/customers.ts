/** Customers and quotes of a running service, over its HTTP interface (protocol §3). */
import { Effect, Schema } from "effect"
import type { CommandFailed } from "../../command-failure.ts"
import { decodeAs, notUnderstood, pathOf, type RemoteAnswer, type RemoteService,
  request } from "./remote.ts"

const pageEntries = 1000

const followPauseMs = 250

const LoadProgress = Schema.Struct({
  href: Schema.String,
  status: Schema.Literals(["pending", "done"]),
  rows: Schema.FiniteFromString,
  read: Schema.FiniteFromString,
  created: Schema.FiniteFromString,
  replaced: Schema.FiniteFromString,
  skipped: Schema.FiniteFromString,
  problem: Schema.optionalKey(Schema.Unknown)
})

/** How a load stands. */
export type LoadProgress = typeof LoadProgress.Type

const toLoad = decodeAs(LoadProgress)

const LoadProblem = Schema.Struct({ row: Schema.String, "#text": Schema.String })

export type LoadProblem = typeof LoadProblem.Type

const isProblem = Schema.is(LoadProblem)

/** The rows that were passed over, as far as they are told. */
export const problemsOf = ({ problem }: LoadProgress): ReadonlyArray<LoadProblem> =>
  (Array.isArray(problem) ? problem : [problem]).filter(isProblem)

/** What is loaded, and how. */
export interface File {
  readonly bytes: AsyncIterable<Uint8Array>
  readonly type: string
  /** Rows with a fault are passed over. */
  readonly isLenient: boolean
}

/** Sends a file; it is certain to be loaded when this succeeds. */
export const sendFile = (
  remote: RemoteService,
  { bytes, isLenient, type }: File
): Effect.Effect<LoadProgress, CommandFailed> =>
  Effect.flatMap(
    request(remote, {
      method: "PUT",
      path: "/customers",
      headers: {
        "content-type": type,
        prefer: isLenient ? "respond-async, handling=lenient" : "respond-async"
      },
      body: bytes,
      withinMs: null
    }),
    toLoad
  )

/** Waits until all rows of a load are in the table; `onStep` is told how it gets on. */
export const followLoad = Effect.fnUntraced(function*(
  remote: RemoteService,
  begun: LoadProgress,
  onStep: (load: LoadProgress) => void
): Effect.fn.Return<LoadProgress, CommandFailed> {
  const path = pathOf(begun.href) ?? (yield* notUnderstood())
  let load = begun
  for (;;) {
    onStep(load)
    if (load.status === "done") return load
    yield* Effect.sleep(followPauseMs)
    load = yield* Effect.flatMap(request(remote, { method: "GET", path }), toLoad)
  }
})

export const tables = ["customers", "quotes"] as const

export type TableName = typeof tables[number]

const TableRow = Schema.Record(Schema.String, Schema.Unknown)

export type TableRow = typeof TableRow.Type

const listings = {
  customers: decodeAs(Schema.Struct({ customer: Schema.Array(TableRow) })),
  quotes: decodeAs(Schema.Struct({ quote: Schema.Array(TableRow) }))
}

const rowsIn = (
  table: TableName,
  answer: RemoteAnswer
): Effect.Effect<ReadonlyArray<TableRow>, CommandFailed> =>
  table === "customers"
    ? Effect.map(listings.customers(answer), ({ customer }) => customer)
    : Effect.map(listings.quotes(answer), ({ quote }) => quote)

/** The rows that an address asks for, page by page, `limit` at the most. */
export const readRows = Effect.fnUntraced(function*(
  remote: RemoteService,
  table: TableName,
  asked: Readonly<Record<string, string>>,
  limit: number,
  onRow: (row: TableRow) => void
): Effect.fn.Return<void, CommandFailed> {
  const page = Math.min(limit, pageEntries)
  const query = new URLSearchParams({ ...asked, limit: String(page) })
  let path: string | undefined = `/${table}?${query}`
  let left = limit
  while (path !== undefined && left > 0) {
    const answer: RemoteAnswer = yield* request(remote, { method: "GET", path })
    for (const row of yield* rowsIn(table, answer)) if (left-- > 0) onRow(row)
    path = answer.next
  }
})
