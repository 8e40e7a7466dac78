/** Reading a quote that is put: a document, or the form of its page. */
import { Effect } from "effect"
import { childOf, childrenOf, isText, textOf } from "../../formats/xml/index.ts"
import { titleCharsMax } from "../../limits.ts"
import { type HttpError, httpError, type RequestInput } from "../../pipeline/index.ts"
import { isDecimal, type Row } from "../../query-engine/index.ts"

/** Characters of a price. */
const priceCharsMax = 64

/** Characters of a symbol. */
const symbolCharsMax = 32

/** `BRK.B`, `^GSPC`, `EURUSD=X`: capital and small letters are different. */
export const isSymbol = (text: string): boolean =>
  text.length <= symbolCharsMax && /^[A-Za-z0-9^=:_.-]*[A-Za-z0-9][A-Za-z0-9^=:_.-]*$/.test(text)

interface Given {
  readonly symbol: string | undefined
  readonly price: string | undefined
  readonly currency: string | undefined
  readonly name: string | undefined
}

const known = new Set(["price", "name", "updated"])

const givenIn = (input: RequestInput): Given => {
  if (input._tag === "Form") {
    const text = (name: string) => input.fields.get(name)?.trim() || undefined
    return {
      symbol: text("symbol"),
      price: text("price"),
      currency: text("currency"),
      name: text("name")
    }
  }
  const { root } = input
  const price = childOf(root, "price")
  const name = childOf(root, "name")
  return {
    symbol: root.attributes["symbol"]?.trim(),
    price: price === undefined ? undefined : textOf(price).trim(),
    currency: price?.attributes["currency"]?.trim(),
    name: name === undefined ? undefined : textOf(name).trim() || undefined
  }
}

const ruleBroken = (input: RequestInput, given: Given, symbol: string): string | undefined => {
  const { currency, name, price } = given
  if (input._tag === "Document") {
    const stranger = childrenOf(input.root).find((child) => !known.has(child.name))
    if (stranger !== undefined) return `a quote has no element ${stranger.name}`
    if (childrenOf(input.root, "price").length > 1) return "a quote has one price"
  }
  if (given.symbol !== undefined && given.symbol !== symbol) {
    return `symbol says ${JSON.stringify(given.symbol.slice(0, symbolCharsMax))}, not ${symbol}`
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

/** The symbol that a form names. */
export const symbolGiven = (input: RequestInput): string | undefined => givenIn(input).symbol

/** The quote's fields but for the time, the price as it was sent; 422 with the rule broken. */
export const quoteOf = (input: RequestInput, symbol: string): Effect.Effect<Row, HttpError> => {
  const given = givenIn(input)
  const rule = ruleBroken(input, given, symbol)
  if (rule !== undefined) return Effect.fail(httpError("unprocessable", rule))
  const { currency, name, price = "" } = given
  return Effect.succeed({
    price,
    ...currency === undefined ? {} : { currency },
    ...name === undefined ? {} : { name }
  })
}
