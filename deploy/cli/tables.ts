/** `restante load` and `restante query`: customers and quotes. */
import { Console, Effect, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { extname } from "node:path"
import { Readable } from "node:stream"
import type { JsonObject, LoadProgress } from "../../client/index.ts"
import { observed } from "../streams.ts"
import { accountFlags, jsonFlag, limitFlag, switchFlag, textArgument, textFlag,
  wordFlag } from "./flags.ts"
import { asAccount, call, locateService, ownResourceOf, wrongUsage } from "./service/index.ts"
import { bytesOf, endWithReader, jsonText, pageSizeFor, plain, plural, printLine, progressLine,
  table, take, webStream } from "./terminal.ts"

const progressIntervalMs = 100

const types = {
  csv: "text/csv; charset=utf-8",
  jsonl: "application/x-ndjson",
  xml: "application/xml"
} as const

type Format = keyof typeof types

const formats: ReadonlyArray<Format> = ["csv", "jsonl", "xml"]

const formatByExtension: Readonly<Record<string, Format>> = {
  ".csv": "csv",
  ".jsonl": "jsonl",
  ".ndjson": "jsonl",
  ".xml": "xml"
}

const summaryOf = ({ created, replaced, rows, skipped }: LoadProgress): string =>
  `${plural(rows, "row")}: ${created} new, ${replaced} replaced, ${skipped} skipped`

export const loadCommand = Command.make(
  "load",
  {
    ...accountFlags,
    table: Argument.Literals("table", ["customers"]).pipe(
      Argument.withDescription("The table to load: customers")
    ),
    file: textArgument("file", "A file in UTF-8, or - for standard input"),
    format: wordFlag("format", formats, "By the file's name by default"),
    continue: switchFlag("continue", "Skip rows with a fault, instead of refusing the file"),
    json: jsonFlag("Print the result as JSON")
  },
  Effect.fnUntraced(function*({ continue: skipInvalidRows, file, format, json, ...flags }) {
    const chosen = Option.getOrElse(format, () => formatByExtension[extname(file).toLowerCase()])
    if (chosen === undefined) {
      return yield* wrongUsage(
        `the format of ${file} does not follow from its name`,
        `give --format: one of ${formats.join(", ")}`
      )
    }
    const service = yield* asAccount(flags)
    const line = progressLine(progressIntervalMs)
    const load = yield* Effect.scoped(Effect.flatMap(bytesOf(file), (source) => {
      let sentBytes = 0
      const bytes = observed<Uint8Array>(source, ({ length }) => {
        sentBytes += length
        line.show(() => `sent ${(sentBytes / 1e6).toFixed(1)} MB`)
      })
      return call(
        service,
        ({ queries }) =>
          queries.loadCustomers(webStream(Readable.from(bytes, { objectMode: false })), {
            contentType: types[chosen],
            skipInvalidRows,
            onProgress: ({ read, rows }) =>
              line.show(() => `loaded ${read} of ${plural(rows, "row")}`)
          })
      )
    }))
    line.clear()
    const { created, href, problems, replaced, rows, skipped } = load
    for (const { detail, row } of problems) yield* Console.error(`row ${row}: ${plain(detail)}`)
    yield* Console.log(
      json
        ? jsonText({ href, rows, created, replaced, skipped, problems })
        : summaryOf(load)
    )
  })
).pipe(
  Command.withDescription("Load a file of customers (CSV, JSON lines, XML), all of it or nothing"),
  Command.withExamples([
    {
      command: "restante load customers people.csv",
      description: "Create or replace every customer in the file"
    },
    {
      command: "restante load customers - --format jsonl --continue",
      description: "From standard input, skipping rows with a fault"
    }
  ])
)

/** The last segment of a URI: the id, or the symbol. */
const lastSegment = (href: unknown): string =>
  typeof href === "string" ? decodeURIComponent(/[^/]*$/.exec(href)?.[0] ?? "") : ""

const cell = (value: unknown): string => {
  if (typeof value === "string") return plain(value)
  if (typeof value !== "object" || value === null) return ""
  // A price: its number and its currency.
  return Object.values(value).toReversed().filter((one) => typeof one === "string").map(plain)
    .join(" ")
}

const hiddenColumns = new Set(["href", "symbol"])

/** Rows below a heading of the fields that any of them has. */
const tableOf = (rows: ReadonlyArray<JsonObject>, key: string): string => {
  const columns = new Set(rows.flatMap((row) => Object.keys(row)))
  const names = [...columns].filter((name) => !hiddenColumns.has(name) && name !== key)
  return table([
    [key, ...names].map((name) => name.toUpperCase()),
    ...rows.map((row) => [lastSegment(row["href"]), ...names.map((name) => cell(row[name]))])
  ])
}

export const queryCommand = Command.make(
  "query",
  {
    ...accountFlags,
    table: Argument.Literals("table", ["customers", "quotes"]).pipe(
      Argument.withDescription("The table to read: customers or quotes")
    ),
    agemin: Flag.Int("agemin").pipe(
      Flag.withDescription("Only customers of this age or older"),
      Flag.optional
    ),
    return: textFlag("return", "fields", "Fields to show, such as \"name age\"; all by default"),
    query: textFlag("query", "id|uri", "A query of the service that selects the rows"),
    limit: limitFlag("How many at most"),
    json: jsonFlag("One JSON object a line")
  },
  Effect.fnUntraced(function*({ agemin, json, limit, query, return: fields, table, ...flags }) {
    const service = yield* locateService(flags, "account")
    endWithReader()
    const rows: Array<JsonObject> = []
    const options = {
      agemin: Option.getOrUndefined(agemin),
      fields: Option.getOrUndefined(fields)?.split(/[\s,]+/),
      query: Option.isNone(query)
        ? undefined
        : (yield* ownResourceOf(service, query.value, "query")).path,
      pageSize: pageSizeFor(limit)
    }
    yield* call(service, async ({ queries }) => {
      for await (const row of take(queries.rows(table, options), limit)) {
        if (json) printLine(jsonText(row))
        else rows.push(row)
      }
    })
    if (!json) yield* Console.log(tableOf(rows, table === "customers" ? "id" : "symbol"))
  })
).pipe(
  Command.withDescription("Read customers or quotes"),
  Command.withExamples([
    {
      command: "restante query customers --agemin 21 --return \"name age\"",
      description: "Customers of 21 and older"
    }
  ])
)
