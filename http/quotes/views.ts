/** What quotes show. */
import { form } from "../html/forms.ts"
import type { Link } from "../html/layout.ts"
import { type Html, html, link, nothing } from "../html/template.ts"
import type { Row } from "../queries/fields.ts"
import type { Listing } from "../queries/listing.ts"
import { rowTable } from "../queries/shown.ts"
import type { View } from "../representations.ts"
import { type Service, uri } from "../service.ts"
import { type Element, element } from "../xml.ts"
import { quotes } from "./table.ts"

export const collectionPath = "/quotes"
export const quotePath = (symbol: string): string =>
  `${collectionPath}/${encodeURIComponent(symbol)}`

const collectionLink: Link = { rel: "collection", href: collectionPath, title: "All quotes" }

/** A quote, with all its fields or only these. */
const quoteElement = (
  service: Service,
  symbol: string,
  row: Row,
  fields: ReadonlyArray<string> = ["price", "name", "updated", "currency"]
): Element => {
  const currency = fields.includes("currency") ? row["currency"] : undefined
  const price = fields.includes("price")
    ? element("price", { currency }, row["price"])
    : currency === undefined
    ? undefined
    : element("price", { currency })
  const other = (name: string) =>
    fields.includes(name) && row[name] !== undefined ? element(name, {}, row[name]) : undefined
  return element(
    "quote",
    { href: uri(service, quotePath(symbol)), symbol },
    price,
    other("name"),
    other("updated")
  )
}

const fieldsForm = (action: string, row: Row | undefined): Html =>
  form({
    id: "put",
    action,
    legend: row === undefined ? "Set a quote (needs the role quotes)" : "Set this quote",
    controls: [
      ...row === undefined
        ? [{ name: "symbol", label: "Symbol", required: true, maxlength: 32 }]
        : [],
      { name: "price", label: "Price", required: true, value: String(row?.["price"] ?? "") },
      {
        name: "currency",
        label: "Currency",
        maxlength: 3,
        value: String(row?.["currency"] ?? ""),
        hint: "Three letters such as USD."
      },
      { name: "name", label: "Name", value: String(row?.["name"] ?? "") }
    ],
    submit: "Set"
  })

/** One quote. */
export const quoteView = (service: Service, symbol: string, value: string): View => {
  const row = quotes.parse(value)
  const path = quotePath(symbol)
  return {
    title: row["name"] === undefined ? symbol : `${symbol}: ${row["name"]}`,
    tree: quoteElement(service, symbol, row),
    body: () =>
      html`<dl><dt>Price</dt><dd>${row["price"]} ${row["currency"] ?? nothing}</dd>
<dt>Updated</dt><dd><time datetime="${row["updated"]}">${row["updated"]}</time></dd></dl>
`,
    links: [collectionLink],
    forms: html`${fieldsForm(path, row)}${
      form({
        id: "delete",
        action: path,
        legend: "Remove a delisted symbol",
        controls: [{ name: "method", label: "", type: "hidden", value: "delete" }],
        submit: "Remove"
      })
    }`
  }
}

/** A page of quotes. */
export const quotesView = (service: Service, listing: Listing): View => ({
  title: "Quotes",
  tree: element(
    "quotes",
    {},
    ...listing.entries.map(({ key, row }) => quoteElement(service, key, row, listing.fields))
  ),
  links: listing.links,
  body: () =>
    html`${
      form({
        id: "find",
        action: collectionPath,
        method: "get",
        legend: "Find a quote",
        controls: [{ name: "quotename", label: "Symbol", type: "search", required: true }],
        submit: "Find"
      })
    }${rowTable(quotes, listing, (key) => link(quotePath(key), key))}`,
  forms: fieldsForm(collectionPath, undefined)
})
