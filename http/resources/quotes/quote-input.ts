/** Reads a quote from a document or from the form of its page. */
import { Effect } from "effect"
import { childOf, childText, isText } from "../../formats/xml/index.ts"
import { titleCharsMax } from "../../limits.ts"
import { type HttpError, type RequestInput, unprocessable } from "../../pipeline/index.ts"
import { isDecimal, type Row } from "../../query-engine/index.ts"

/** Characters of a price. */
export const priceCharsMax = 64

/** Characters of a symbol. */
const symbolCharsMax = 32

/** Whether a text is a symbol such as `BRK.B`, `^GSPC` or `EURUSD=X`. Letter case matters. */
export const isSymbol = (text: string): boolean =>
  text.length <= symbolCharsMax && /^[A-Za-z0-9^=:_.-]*[A-Za-z0-9][A-Za-z0-9^=:_.-]*$/.test(text)

interface QuoteInput {
  readonly symbol: string | undefined
  readonly price: string | undefined
  readonly currency: string | undefined
  readonly name: string | undefined
}

const inputOf = (input: RequestInput): QuoteInput => {
  const trimmed = (text: string | undefined) => text?.trim() || undefined
  if (input._tag === "Form") {
    const field = (name: string) => trimmed(input.fields.get(name))
    return {
      symbol: field("symbol"),
      price: field("price"),
      currency: field("currency"),
      name: field("name")
    }
  }
  const { root } = input
  return {
    symbol: root.attributes["symbol"]?.trim(),
    price: trimmed(childText(root, "price")),
    currency: childOf(root, "price")?.attributes["currency"]?.trim(),
    name: trimmed(childText(root, "name"))
  }
}

const brokenRule = (quote: QuoteInput, symbol: string): string | undefined => {
  const { currency, name, price } = quote
  if (quote.symbol !== undefined && quote.symbol !== symbol) {
    return `symbol says ${JSON.stringify(quote.symbol.slice(0, symbolCharsMax))}, not ${symbol}`
  }
  if (price === undefined || price.length > priceCharsMax || !isDecimal(price)) {
    return `price is a decimal number such as 12.50, of ${priceCharsMax} characters at the most`
  }
  if (currency !== undefined && !/^[A-Z]{3}$/.test(currency)) {
    return "currency is a code of three letters such as USD (ISO 4217)"
  }
  if (name !== undefined && (name.length > titleCharsMax || !isText(name))) {
    return `name has ${titleCharsMax} characters at the most`
  }
  return undefined
}

/** The symbol in the document or form. */
export const symbolIn = (input: RequestInput): string | undefined => inputOf(input).symbol

/** The fields of the quote without its time, with the price as sent; fails with 422. */
export const quoteOf = (input: RequestInput, symbol: string): Effect.Effect<Row, HttpError> => {
  const quote = inputOf(input)
  const rule = brokenRule(quote, symbol)
  if (rule !== undefined) return unprocessable(rule)
  const { currency, name, price = "" } = quote
  return Effect.succeed({
    price,
    ...currency === undefined ? {} : { currency },
    ...name === undefined ? {} : { name }
  })
}
