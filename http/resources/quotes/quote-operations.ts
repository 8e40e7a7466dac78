/** The operations of quotes (C1, C3, C4). */
import { attribute, attributes, dateTime, documentRequestBody, elementText, emptyResponse,
  formSchema, list, object, type OperationGroup, ref, rootElement, seeOtherResponse, text, uri,
  viewResponse } from "../../formats/openapi/index.ts"
import { rowQuery } from "../rows/index.ts"

const price = {
  anyOf: [
    text,
    object({ currency: attribute(text), ...elementText("Its digits, exactly as they were sent.") })
  ]
}

/** A price as clients send it: JSON may have it as a number. */
const newPrice = {
  anyOf: [
    { type: ["string", "number"] },
    object({ currency: attribute(text), "#text": { type: ["string", "number"] } })
  ]
}

const fields = ["price", "currency", "name"]

export const quoteOperations: OperationGroup = {
  tag: "quotes",
  about: "Prices by symbol, their decimals exact.",
  schemas: {
    NewQuote: rootElement("quote", {
      ...attributes({ symbol: text, href: uri }),
      price: newPrice,
      name: text,
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
      id: "findQuotes",
      summary: "One quote by `quotename`, or all of them (C1)",
      query: {
        quotename: { description: "The symbol of the one that is wanted.", schema: text },
        ...rowQuery
      },
      problems: ["not-found", "gone", "unprocessable"],
      responses: { 200: viewResponse("QuoteOrQuotes", "The quote, or a page of quotes") }
    },
    "POST /quotes": {
      id: "createQuote",
      summary: "Sets the quote of the symbol in the document; for the role quotes",
      needs: "role",
      body: documentRequestBody("NewQuote", {
        form: formSchema(["symbol", ...fields], ["symbol", "price"])
      }),
      problems: ["gone", "not-found"],
      responses: { 201: viewResponse("Quote", "The quote", ["Location"]), 303: seeOtherResponse }
    },
    "GET /quotes/{symbol}": {
      id: "getQuote",
      summary: "A quote",
      problems: ["gone"],
      responses: { 200: viewResponse("Quote", "The quote") }
    },
    "PUT /quotes/{symbol}": {
      id: "putQuote",
      summary: "Sets a quote; for the role quotes (C3)",
      needs: "role",
      body: documentRequestBody("NewQuote"),
      responses: {
        200: viewResponse("Quote", "Set over an earlier one"),
        201: viewResponse("Quote", "A new quote", ["Location"])
      }
    },
    "POST /quotes/{symbol}": {
      id: "changeQuoteByForm",
      summary: "PUT, or with `method=delete` DELETE, for a page's form",
      needs: "role",
      body: documentRequestBody("NewQuote", { form: formSchema(["method", ...fields]) }),
      problems: ["gone", "precondition-failed"],
      responses: { 303: seeOtherResponse }
    },
    "DELETE /quotes/{symbol}": {
      id: "deleteQuote",
      summary: "Removes a delisted symbol; for the role quotes (C4)",
      needs: "role",
      problems: ["gone"],
      responses: { 204: emptyResponse("It is removed") }
    }
  }
}
