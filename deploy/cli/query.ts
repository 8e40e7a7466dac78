/** `restante query`: customers or quotes, as a table or as JSON lines. */
import { Console, Effect, Option, Schema } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { readRows, type TableRow, tables } from "../customers.ts"
import { byToken } from "../remote.ts"
import { endWithReader, jsonFlag, plain, table } from "./output.ts"
import { accountFlags, serviceLocation } from "./remote.ts"

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
