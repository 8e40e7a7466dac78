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
  // Only this service writes these records.
  parse: (value) => JSON.parse(value) as Row
}

/** Removed symbols, whose URIs answer 410. */
export const goneQuotes = "quotes-gone"
