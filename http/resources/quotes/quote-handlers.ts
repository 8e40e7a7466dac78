/** Quotes: C1, C3 and C4 (protocol §3). */
import { Effect } from "effect"
import { defineHandler, unprocessable, viewAnswer } from "../../pipeline/index.ts"
import { listRows, readRowQuery, rowAnswer, type RowResource } from "../rows/index.ts"
import { isSymbol, quoteOf, symbolIn } from "./quote-input.ts"
import { goneQuotes, quotesTable } from "./quote-table.ts"
import { collectionPath, fieldsForm, quotePath, quotesView, quoteView } from "./quote-views.ts"

export const quotes: RowResource = {
  schema: quotesTable,
  table: quotesTable.name,
  goneTable: goneQuotes,
  view: quoteView,
  changes: (key, value) => [{ table: quotesTable.name, key, value }],
  removal: (key) => [
    { table: quotesTable.name, key, value: null },
    { table: goneQuotes, key, value: "" }
  ],
  role: "quotes",
  root: "quote",
  parameter: "symbol",
  isKey: isSymbol,
  collectionPath,
  path: quotePath,
  fieldsForm,
  readInput: (symbol, input, atMs) =>
    Effect.map(quoteOf(input, symbol), (row) => {
      const updated = new Date(atMs).toISOString()
      return JSON.stringify({ ...row, updated })
    }),
  newKey: (_, input) => {
    const symbol = symbolIn(input)
    return symbol !== undefined && isSymbol(symbol)
      ? Effect.succeed(symbol)
      : unprocessable("symbol must be the symbol of a quote, such as BRK.B")
  }
}

/** C1: one quote by its symbol, or a page of all quotes or of those that a query matches. */
export const findQuotes = defineHandler(function*(service, call) {
  const parameters = yield* readRowQuery(call)
  const symbol = parameters.get("quotename")
  if (symbol !== undefined && parameters.get("query") === undefined) {
    return yield* rowAnswer(service, quotes, symbol)
  }
  const restriction = symbol === undefined ? {} : { key: symbol }
  const listing = yield* listRows(service, call, quotesTable, collectionPath, restriction)
  return viewAnswer(quotesView(service, listing))
})
