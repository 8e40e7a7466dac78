/** `restante query`: customers or quotes, as a table or as JSON lines. */
import { Console, Effect, Option, Schema, type Scope } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { open } from "node:fs/promises"
import { extname } from "node:path"
import { type CommandFailed, exitCodes } from "../command-failure.ts"
import { byToken, failed, followLoad, type LoadProgress, problemsOf, readRows, sendFile,
  type TableRow, tables } from "./service/index.ts"
import { accountFlags, asAccount, endWithReader, jsonFlag, plain, serviceLocation, some,
  table } from "./terminal.ts"

const types = {
  csv: "text/csv; charset=utf-8",
  jsonl: "application/x-ndjson",
  xml: "application/xml"
} as const

type Format = keyof typeof types

const formats: ReadonlyArray<Format> = ["csv", "jsonl", "xml"]

const byName: Readonly<Record<string, Format>> = {
  ".csv": "csv",
  ".jsonl": "jsonl",
  ".ndjson": "jsonl",
  ".xml": "xml"
}

/** The bytes of a file, or of standard input. */
const bytesOf = (
  file: string
): Effect.Effect<AsyncIterable<Uint8Array>, CommandFailed, Scope.Scope> =>
  file === "-" ? Effect.succeed(process.stdin) : Effect.gen(function*() {
    const handle = yield* Effect.acquireRelease(
      Effect.tryPromise({
        try: () => open(file),
        catch: (cause) =>
          failed(
            `${file} cannot be read: ${cause instanceof Error ? cause.message : String(cause)}`
          )
      }),
      (handle) => Effect.promise(() => handle.close())
    )
    return handle.createReadStream({ autoClose: false, highWaterMark: 256 * 1024 })
  })

/** One line that is written over and over, for people only. */
class Progress {
  private readonly isShown = process.stderr.isTTY
  private lastMs = 0
  private width = 0

  show(text: string, isLast = false): void {
    const nowMs = performance.now()
    if (!this.isShown || (!isLast && nowMs - this.lastMs < 100)) return
    this.lastMs = nowMs
    process.stderr.write(`\r${text.padEnd(this.width)}${isLast ? "\n" : ""}`)
    this.width = text.length
  }
}

async function* counted(
  bytes: AsyncIterable<Uint8Array>,
  progress: Progress
): AsyncGenerator<Uint8Array> {
  let sent = 0
  for await (const chunk of bytes) {
    sent += chunk.length
    progress.show(`sent ${(sent / 1e6).toFixed(1)} MB`)
    yield chunk
  }
}

const summaryOf = ({ created, replaced, rows, skipped }: LoadProgress): string =>
  `${some(rows, "row")}: ${created} new, ${replaced} replaced, ${skipped} passed over`

export const loadCommand = Command.make(
  "load",
  {
    ...accountFlags,
    table: Argument.Literals("table", ["customers"]).pipe(
      Argument.withDescription("What is loaded: customers")
    ),
    file: Argument.String("file").pipe(
      Argument.withDescription("A file in UTF-8, or - for standard input")
    ),
    format: Flag.Literals("format", formats).pipe(
      Flag.withDescription("By the file's name unless given"),
      Flag.optional
    ),
    continue: Flag.Boolean("continue").pipe(
      Flag.withDescription("Pass over rows with a fault, instead of refusing the file"),
      Flag.withDefault(false)
    ),
    json: jsonFlag("Print what became of it as JSON")
  },
  Effect.fnUntraced(function*({ continue: isLenient, file, format, json, ...given }) {
    const chosen = Option.getOrElse(format, () => byName[extname(file).toLowerCase()])
    if (chosen === undefined) {
      return yield* failed(`give --format: one of ${formats.join(", ")}`, exitCodes.usage)
    }
    const remote = yield* asAccount(given)
    const progress = new Progress()
    const begun = yield* Effect.scoped(
      Effect.flatMap(
        bytesOf(file),
        (bytes) =>
          sendFile(remote, { bytes: counted(bytes, progress), type: types[chosen], isLenient })
      )
    )
    const load = yield* followLoad(
      remote,
      begun,
      ({ read, rows }) => progress.show(`loaded ${read} of ${some(rows, "row")}`)
    )
    progress.show(summaryOf(load), true)
    const problems = problemsOf(load).map((one) => ({ row: Number(one.row), detail: one["#text"] }))
    for (const { detail, row } of problems) yield* Console.error(`row ${row}: ${plain(detail)}`)
    const { created, href, replaced, rows, skipped } = load
    yield* Console.log(
      json
        ? JSON.stringify({ href, rows, created, replaced, skipped, problems })
        : summaryOf(load)
    )
  })
).pipe(
  Command.withDescription("Load a file of customers (CSV, JSON lines, XML), all of it or nothing"),
  Command.withExamples([
    {
      command: "restante load customers people.csv",
      description: "Make or replace every customer in the file"
    },
    {
      command: "restante load customers - --format jsonl --continue",
      description: "From standard input, passing over rows with a fault"
    }
  ])
)

/* `restante load`: a whole file of customers, all of it or nothing. */

const limitDefault = 100

const limitMax = 1_000_000_000

/** An address is shown by its last segment: the id, or the symbol. */
const last = (href: unknown): string =>
  typeof href === "string" ? decodeURIComponent(/[^/]*$/.exec(href)?.[0] ?? "") : ""

const cell = (value: unknown): string => {
  if (typeof value === "string") return plain(value)
  if (typeof value !== "object" || value === null) return ""
  // A price: its number and its currency.
  return Object.values(value).toReversed().filter((one) => typeof one === "string").map(plain)
    .join(" ")
}

const hidden = new Set(["href", "symbol"])

/** Rows below a heading of the fields that any of them has. */
const tableOf = (rows: ReadonlyArray<TableRow>, key: string): string => {
  const columns = new Set(rows.flatMap((row) => Object.keys(row)))
  const shown = [...columns].filter((name) => !hidden.has(name) && name !== key)
  return table([
    [key, ...shown].map((name) => name.toUpperCase()),
    ...rows.map((row) => [last(row["href"]), ...shown.map((name) => cell(row[name]))])
  ])
}

export const queryCommand = Command.make(
  "query",
  {
    ...accountFlags,
    table: Argument.Literals("table", tables).pipe(
      Argument.withDescription("What is read: customers or quotes")
    ),
    agemin: Flag.Int("agemin").pipe(
      Flag.withDescription("Only customers of this age or older"),
      Flag.optional
    ),
    return: Flag.String("return").pipe(
      Flag.withMetavar("fields"),
      Flag.withDescription("Fields to show, such as \"name age\"; all unless given"),
      Flag.optional
    ),
    query: Flag.String("query").pipe(
      Flag.withMetavar("uri"),
      Flag.withDescription("A query of the service by which rows are chosen"),
      Flag.optional
    ),
    limit: Flag.Int("limit").pipe(
      Flag.withSchema(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: limitMax }))),
      Flag.withMetavar("number"),
      Flag.withDescription("How many at most"),
      Flag.withDefault(limitDefault)
    ),
    json: jsonFlag("One JSON object a line")
  },
  Effect.fnUntraced(function*({ agemin, json, limit, query, return: fields, table, ...given }) {
    const { baseUrl, token } = yield* serviceLocation(given, "account")
    const remote = {
      baseUrl,
      authorization: token === undefined ? undefined : byToken(token)
    }
    const asked = Object.fromEntries(
      Object.entries({
        agemin: Option.getOrUndefined(agemin)?.toString(),
        return: Option.getOrUndefined(fields),
        query: Option.getOrUndefined(query)
      }).flatMap(([name, value]) => value === undefined ? [] : [[name, value] as const])
    )
    endWithReader()
    const rows: Array<TableRow> = []
    yield* readRows(remote, table, asked, limit, (row) => {
      if (json) process.stdout.write(`${JSON.stringify(row)}\n`)
      else rows.push(row)
    })
    if (!json) yield* Console.log(tableOf(rows, table === "customers" ? "id" : "symbol"))
  })
).pipe(
  Command.withDescription("Read customers or quotes"),
  Command.withExamples([
    {
      command: "restante query customers --agemin 21 --return \"name age\"",
      description: "Those of 21 and older"
    }
  ])
)
