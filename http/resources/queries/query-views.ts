/** The representations of queries, with the forms that create and change them. */
import { deleteForm, emptyState, type Html, html, link, nothing, type PageLink, renderForm,
  table } from "../../formats/html/index.ts"
import type { ResourceView } from "../../formats/index.ts"
import { element, isoTime } from "../../formats/xml/index.ts"
import { absoluteUri, type Service } from "../../pipeline/index.ts"
import { queryElement, type RowQuery } from "../../query-engine/index.ts"
import { collectionPath, expiryMs, parseQuery, queryPath, recordVersion } from "../rows/index.ts"
import { changeForm, creationForm, documentForm, writeIndented } from "./query-forms.ts"

const collectionLink: PageLink = { rel: "collection", href: collectionPath, title: "Your queries" }

const titleOf = ({ on, title }: RowQuery): string => title ?? `A query on ${on}`

const resultPath = (id: string, { on }: RowQuery): string =>
  `/${on}?query=${encodeURIComponent(queryPath(id))}`

const changeForms = (action: string, query: RowQuery, version: string): Html => {
  const form = changeForm(action, query, version)
  return html`${form === undefined ? nothing : renderForm(form)}${
    renderForm(
      documentForm(action, writeIndented(queryElement(query)), version),
      form === undefined ? "primary" : "rare"
    )
  }${deleteForm(action, "Remove this query")}`
}

/** A query; `secret` is that of its edit URI, when the request had it. */
export const queryView = (
  service: Service,
  id: string,
  value: string,
  secret?: string
): ResourceView => {
  const stored = parseQuery(value)
  const { query } = stored
  const expires = isoTime(expiryMs(stored))
  const tree = queryElement(query, absoluteUri(service, queryPath(id)), expires)
  const result = resultPath(id, query)
  const edit = secret === undefined ? undefined : `${queryPath(id)}~${secret}`
  return {
    title: titleOf(query),
    tree,
    links: [
      { rel: "related", href: result, title: "The result" },
      collectionLink,
      ...edit === undefined ? [] : [{ rel: "edit", href: absoluteUri(service, edit) }]
    ],
    forms: html`${changeForms(edit ?? queryPath(id), query, recordVersion(value))}`
  }
}

/** The caller's own queries, and the form that creates one. */
export const queriesView = (
  service: Service,
  stored: ReadonlyArray<{ readonly id: string; readonly query: RowQuery }>,
  links: ReadonlyArray<PageLink>
): ResourceView => ({
  title: "Queries",
  tree: element(
    "queries",
    {},
    ...stored.map(({ id, query: { on, title } }) =>
      element("query", { href: absoluteUri(service, queryPath(id)), on, title })
    )
  ),
  links,
  body: () =>
    html`<p>Create a query here that is too long for a URI, then read its result.
The list shows your own queries when you are signed in.</p>
${
      stored.length === 0
        ? emptyState("There are no queries.", "Create the first below; it needs no account.")
        : table(
          "Your queries",
          ["Query", "On"],
          stored.map(({ id, query }) =>
            html`<tr><td>${link(queryPath(id), titleOf(query))}</td><td>${query.on}</td></tr>
`
          )
        )
    }
`,
  forms: html`${renderForm(creationForm())}${renderForm(documentForm(collectionPath), "rare")}`
})
