/** The representations of quotes. */
import { deleteForm, html, type HtmlForm, link, nothing, type PageLink, renderForm, time,
  versionControl } from "../../formats/html/index.ts"
import type { ResourceView } from "../../formats/index.ts"
import { type Element, element } from "../../formats/xml/index.ts"
import { absoluteUri, type Service } from "../../pipeline/index.ts"
import type { Row } from "../../query-engine/index.ts"
import { recordVersion, type RowListing, rowTable } from "../rows/index.ts"
import { quotesTable } from "./quote-table.ts"

const half = "half" as const

export const collectionPath = "/quotes"

export const quotePath = (symbol: string): string =>
  `${collectionPath}/${encodeURIComponent(symbol)}`

const collectionLink: PageLink = { rel: "collection", href: collectionPath, title: "All quotes" }

/** A quote with the fields to return. */
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
    { href: absoluteUri(service, quotePath(symbol)), symbol },
    price,
    other("name"),
    other("updated")
  )
}

/** The form of a quote's fields: empty, or with the values of a record. */
export const fieldsForm = (action: string, value?: string): HtmlForm => {
  const row = value === undefined ? undefined : quotesTable.parse(value)
  return {
    id: "put",
    action,
    legend: row === undefined ? "Set a quote (needs the role quotes)" : "Set this quote",
    controls: [
      ...action === collectionPath
        ? [{ name: "symbol", label: "Symbol", required: true, maxlength: 32, width: half }]
        : [versionControl(value === undefined ? undefined : recordVersion(value))],
      {
        name: "price",
        label: "Price",
        required: true,
        width: half,
        value: String(row?.["price"] ?? ""),
        hint: "A decimal such as 12.50, stored exactly."
      },
      {
        name: "currency",
        label: "Currency",
        maxlength: 3,
        width: half,
        value: String(row?.["currency"] ?? ""),
        hint: "Three letters such as USD."
      },
      { name: "name", label: "Name", value: String(row?.["name"] ?? ""), width: half }
    ],
    submit: "Set"
  }
}

/** C1 as a form. */
export const findForm = (): HtmlForm => ({
  id: "find",
  action: collectionPath,
  method: "get",
  legend: "Find a quote",
  controls: [{ name: "quotename", label: "Symbol", type: "search", required: true }],
  submit: "Find"
})

/** One quote. */
export const quoteView = (service: Service, symbol: string, value: string): ResourceView => {
  const row = quotesTable.parse(value)
  const path = quotePath(symbol)
  return {
    title: row["name"] === undefined ? symbol : `${symbol}: ${row["name"]}`,
    tree: quoteElement(service, symbol, row),
    body: () =>
      html`<dl class="facts"><dt>Price</dt><dd>${row["price"]} ${row["currency"] ?? nothing}</dd>
<dt>Updated</dt><dd>${time(String(row["updated"]))}</dd></dl>
`,
    links: [collectionLink],
    forms: html`${renderForm(fieldsForm(path, value))}${
      deleteForm(path, "Remove a delisted symbol")
    }`
  }
}

/** A page of quotes. */
export const quotesView = (service: Service, listing: RowListing): ResourceView => ({
  title: "Quotes",
  tree: element(
    "quotes",
    {},
    ...listing.entries.map(({ key, row }) => quoteElement(service, key, row, listing.fields))
  ),
  links: listing.links,
  body: () =>
    html`${renderForm(findForm())}${
      rowTable(quotesTable, listing, (key) => link(quotePath(key), key))
    }`,
  forms: renderForm(fieldsForm(collectionPath), "secondary")
})
