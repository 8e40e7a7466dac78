/** The rows of a page as an HTML table. */
import { emptyState, type Html, html, link, nothing, table as scrolling,
  time } from "../../formats/html/index.ts"
import type { Row, TableSchema } from "../../query-engine/index.ts"
import type { RowListing } from "./row-listing.ts"

const heading = (name: string): string => name.charAt(0).toUpperCase() + name.slice(1)

const cell = (name: string, row: Row, numbers: ReadonlySet<string>): Html => {
  const value = row[name]
  if (value === undefined) return html`<td></td>`
  if (numbers.has(name)) return html`<td class="num">${value}</td>`
  return html`<td>${/^\d{4}-\d\d-\d\dT.*Z$/.test(String(value)) ? time(String(value)) : value}</td>`
}

/** The rows of a page as a table; the first column links to the page of each row. */
export const rowTable = (
  table: TableSchema,
  { entries, fields, links, query }: RowListing,
  linkTo: (key: string) => Html
): Html => {
  const columns = (fields ?? table.fields.map(({ name }) => name))
    .filter((name) => name !== table.key)
  const about = query === undefined
    ? nothing
    : html`<p>Chosen by ${link(query.href, query.query.title ?? "a query")}.</p>
`
  if (entries.length === 0) {
    return html`${about}${
      links.length === 0
        ? emptyState("No row matches.", "Use fewer conditions, or add a row below.")
        : emptyState("This page is empty: see the next one.")
    }`
  }
  const numbers = new Set(
    table.fields.filter(({ kind }) => kind !== "text").map(({ name }) => name)
  )
  const heads = columns.map((name) => numbers.has(name) ? { number: heading(name) } : heading(name))
  const rows = entries.map(({ key, row }) =>
    html`<tr><th scope="row">${linkTo(key)}</th>${
      columns.map((name) => cell(name, row, numbers))
    }</tr>
`
  )
  return html`${about}${scrolling(heading(table.name), [heading(table.key), ...heads], rows)}`
}
