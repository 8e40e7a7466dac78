/** The table of quotes: `quotes` by symbol. */
import type { Row, TableSchema } from "../../query-engine/index.ts"

export const quotesTable: TableSchema = {
  name: "quotes",
  key: "symbol",
  fields: [
    { name: "price", kind: "decimal" },
    { name: "currency", kind: "text" },
    { name: "name", kind: "text" },
    { name: "updated", kind: "text" }
  ],
  // This service's own text, made when a quote is put.
  parse: (value) => JSON.parse(value) as Row
}

/** Symbols that were delisted: their URIs answer 410. */
export const goneQuotes = "quotes-gone"
