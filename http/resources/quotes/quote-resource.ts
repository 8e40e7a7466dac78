/** The operations of quotes (C1, C3, C4). */
import { quotesTable } from "./quote-table.ts"
import { attribute, attributes, dateTime, elementText, list, object, ref, rootElement,
  spacesPattern, text, uri, viewResponse } from "../../formats/openapi/index.ts"
import { titleCharsMax } from "../../limits.ts"
import type { ResourceDefinition } from "../../resource.ts"
import { rowOperations, rowQuery } from "../rows/index.ts"
import { findQuotes, quotes } from "./quote-handlers.ts"
import { priceCharsMax } from "./quote-input.ts"

const price = {
  anyOf: [
    text,
    object({ currency: attribute(text), ...elementText("The digits, exactly as sent.") })
  ]
}

const currency = { type: "string", pattern: "^[A-Z]{3}$" }

/** A number counts as its text, whose sign is one of the characters. */
const decimal = {
  type: ["string", "number"],
  pattern: "^[+-]?[0-9]+(\\.[0-9]+)?$",
  maxLength: priceCharsMax,
  exclusiveMinimum: -Number(`1e${priceCharsMax - 1}`),
  exclusiveMaximum: Number(`1e${priceCharsMax}`)
}

const name = { ...text, maxLength: titleCharsMax }

const symbol = { type: "string", pattern: "^[A-Za-z0-9^=:_.-]{0,31}[A-Za-z0-9]$" }

/** A price as clients send it: JSON may have it as a number. */
const newPrice = {
  anyOf: [
    decimal,
    object({ currency: attribute(currency), text: decimal }, ["text"])
  ]
}

export const quoteResource: ResourceDefinition = {
  tag: "quotes",
  about: "Prices by symbol, with exact decimals.",
  schemas: {
    NewQuote: rootElement("quote", {
      ...attributes({ symbol, href: uri }),
      price: newPrice,
      name,
      updated: text
    }, ["price"]),
    Quote: rootElement("quote", {
      ...attributes({ href: uri, symbol: text }),
      price,
      name: text,
      updated: dateTime
    }, ["href", "symbol"]),
    Quotes: rootElement("quotes", { quote: list(ref("Quote")) }, ["quote"]),
    QuoteOrQuotes: { anyOf: [ref("Quotes"), ref("Quote")] }
  },
  operations: {
    "GET /quotes": {
      handle: findQuotes,
      id: "findQuotes",
      summary: "Reads one quote by `quotename`, or lists all of them",
      query: {
        quotename: { description: "The symbol of one quote.", schema: text },
        ...rowQuery(quotesTable)
      },
      problems: ["not-found", "gone", "unprocessable"],
      responses: { 200: viewResponse("QuoteOrQuotes", "The quote, or a page of quotes") }
    },
    ...rowOperations(quotes, {
      fields: {
        symbol,
        price: decimal,
        currency: { ...currency, pattern: `^${spacesPattern}([A-Z]{3})?${spacesPattern}$` },
        name
      },
      createProblems: ["gone", "not-found"],
      create: "Sets the quote of the symbol in the document",
      put: "Sets a quote, for the role quotes",
      remove: "Removes a delisted symbol, for the role quotes"
    })
  }
}
