/** What queries show, and the pages with the forms that make and change them. */
import { emptyState, type Html, html, link, nothing, type PageLink, renderForm,
  table } from "../../formats/html/index.ts"
import type { ResourceView } from "../../formats/index.ts"
import { type Element, element } from "../../formats/xml/index.ts"
import { absoluteUri, type Service } from "../../pipeline/index.ts"
import { queryElement, type RowQuery } from "../../query-engine/index.ts"
import { collectionPath, endOf, parseStored, queryPath } from "../rows/index.ts"
import { controls, documentForm, makeForm, writeIndented } from "./query-forms.ts"

const collectionLink: PageLink = { rel: "collection", href: collectionPath, title: "Your queries" }

const titleOf = ({ on, title }: RowQuery): string => title ?? `A query on ${on}`

const resultPath = (id: string, { on }: RowQuery): string =>
  `/${on}?query=${encodeURIComponent(queryPath(id))}`

const changeForms = (action: string, query: RowQuery, tree: Element): Html => {
  const given = controls(query)
  return html`${
    given === undefined
      ? nothing
      : renderForm({
        id: "change",
        action,
        legend: "Change this query",
        controls: given,
        submit: "Change"
      })
  }${renderForm(documentForm(action, writeIndented(tree)))}${
    renderForm({
      id: "delete",
      action,
      legend: "Remove this query",
      controls: [{ name: "method", label: "", type: "hidden", value: "delete" }],
      submit: "Remove",
      tone: "danger"
    })
  }`
}

/** A query; `secret` is what lets it be changed, for those who came with it. */
export const queryView = (
  service: Service,
  id: string,
  value: string,
  secret?: string
): ResourceView => {
  const stored = parseStored(value)
  const { query } = stored
  const endMs = endOf(stored)
  const expires = endMs === undefined ? undefined : new Date(endMs).toISOString()
  const tree = queryElement(query, absoluteUri(service, queryPath(id)), expires)
  const result = resultPath(id, query)
  const edit = secret === undefined ? undefined : `${queryPath(id)}~${secret}`
  return {
    title: titleOf(query),
    tree,
    links: [
      { rel: "related", href: result, title: "What it finds" },
      collectionLink,
      ...edit === undefined ? [] : [{ rel: "edit", href: absoluteUri(service, edit) }]
    ],
    forms: html`${changeForms(edit ?? queryPath(id), query, queryElement(query))}`
  }
}

/** The caller's own queries, and the form that makes one. */
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
    html`<p>A query that is too much for an address is a resource of its own:
make it here, then read what it finds. Only your own are listed here, when you are signed in.</p>
${
      stored.length === 0
        ? emptyState("There are none.", "Make the first below; it needs no account.")
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
  forms: html`${renderForm(makeForm())}${renderForm(documentForm(collectionPath))}`
})
