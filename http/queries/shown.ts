/** Rows as a table of a page. */
import { type Html, html, link, nothing } from "../html/template.ts"
import type { Table } from "./fields.ts"
import type { Listing } from "./listing.ts"

const heading = (name: string): string => name.charAt(0).toUpperCase() + name.slice(1)

/** The rows of a page as a table; the first column leads to each row's own page. */
export const rowTable = (
  table: Table,
  { entries, fields, links, query }: Listing,
  linkTo: (key: string) => Html
): Html => {
  const shown = (fields ?? table.fields.map(({ name }) => name))
    .filter((name) => name !== table.key)
  const about = query === undefined
    ? nothing
    : html`<p>Chosen by ${link(query.href, query.query.title ?? "a query")}.</p>
`
  if (entries.length === 0) {
    return html`${about}<p id="empty">There is nothing ${
      links.length === 0 ? "that fits" : "on this page: see the next one"
    }.</p>
`
  }
  return html`${about}<div class="scroll"><table>
<thead><tr><th scope="col">${heading(table.key)}</th>${
    shown.map((name) => html`<th scope="col">${heading(name)}</th>`)
  }</tr></thead>
<tbody>${
    entries.map(({ key, row }) =>
      html`<tr><th scope="row">${linkTo(key)}</th>${
        shown.map((name) => html`<td>${row[name] ?? nothing}</td>`)
      }</tr>
`
    )
  }</tbody></table></div>
`
}
