/** What queries show, and the forms that make and change them. */
import { form } from "../html/forms.ts"
import type { Control } from "../html/forms.ts"
import type { FormFields } from "../forms.ts"
import type { Link } from "../html/layout.ts"
import { type Html, html, link, nothing } from "../html/template.ts"
import { titleCharsMax } from "../limits.ts"
import type { View } from "../representations.ts"
import { type Service, uri } from "../service.ts"
import { type Element, element } from "../xml.ts"
import { type Condition, type Operator, operators, type Query } from "./condition.ts"
import { fieldNames, queryElement } from "./document.ts"
import { valueCharsMax } from "./limits.ts"
import { collectionPath, parseStored, queryPath } from "./store.ts"
import { tableOf, tables } from "./tables.ts"

const collectionLink: Link = { rel: "collection", href: collectionPath, title: "Your queries" }

const titleOf = ({ on, title }: Query): string => title ?? `A query on ${on}`

/** Conditions that a form has room for. */
const formConditions = [1, 2, 3]

/** The conditions of a query as a form shows them; undefined where it cannot. */
const simple = (condition: Condition | undefined) => {
  if (condition === undefined) return { match: "all", wheres: [] }
  if (condition._tag === "where") return { match: "all", wheres: [condition] }
  if (condition._tag === "not") return undefined
  const wheres = condition.of.flatMap((one) => one._tag === "where" ? [one] : [])
  return wheres.length === condition.of.length && wheres.length <= formConditions.length
    ? { match: condition._tag, wheres }
    : undefined
}

const every = (names: ReadonlyArray<string>): ReadonlyArray<readonly [string, string]> =>
  names.map((name) => [name, name])

const operatorWords: Readonly<Record<Operator, string>> = {
  eq: "is",
  ne: "is not",
  lt: "is less than",
  le: "is at most",
  gt: "is more than",
  ge: "is at least",
  contains: "contains",
  starts: "starts with",
  ends: "ends with"
}

/** The three controls of one condition. */
const conditionControls = (
  at: number,
  where: { readonly field: string; readonly op: string; readonly value: string } | undefined,
  fields: ReadonlyArray<string>
): ReadonlyArray<Control> => [
  {
    name: `field${at}`,
    label: `Condition ${at}: field`,
    type: "select",
    value: where?.field ?? "",
    options: [["", "none"], ...every(fields)]
  },
  {
    name: `op${at}`,
    label: `Condition ${at}: operator`,
    type: "select",
    value: where?.op ?? "eq",
    options: operators.map((operator) => [operator, operatorWords[operator]])
  },
  {
    name: `value${at}`,
    label: `Condition ${at}: value`,
    value: where?.value ?? "",
    maxlength: valueCharsMax
  }
]

const controls = (query?: Query): ReadonlyArray<Control> | undefined => {
  const given = simple(query?.condition)
  if (given === undefined) return undefined
  const fields = query === undefined
    ? [...new Set(tables.flatMap(fieldNames))]
    : fieldNames(tableOf(query))
  const order = query?.order
  return [
    { name: "title", label: "Title", value: query?.title ?? "", maxlength: titleCharsMax },
    {
      name: "on",
      label: "On",
      type: "select",
      value: query?.on ?? "customers",
      options: every(tables.map(({ name }) => name))
    },
    {
      name: "match",
      label: "Match",
      type: "select",
      value: given.match,
      options: [["all", "all of these"], ["any", "any of these"]]
    },
    ...formConditions.flatMap((at) => conditionControls(at, given.wheres[at - 1], fields)),
    {
      name: "return",
      label: "Fields to show",
      value: query?.fields?.join(" ") ?? "",
      hint: "Such as: name age. All when empty."
    },
    {
      name: "order",
      label: "Order by",
      type: "select",
      value: order?.by ?? "",
      options: [["", "the usual order"], ...every(fields)]
    },
    {
      name: "direction",
      label: "Direction",
      type: "select",
      value: order?.descending === true ? "desc" : "asc",
      options: [["asc", "upwards"], ["desc", "downwards"]]
    },
    { name: "limit", label: "Rows at the most", value: String(query?.limit ?? "") }
  ]
}

/** The document that a form stands for. */
export const fromForm = (fields: FormFields): Element => {
  const text = (name: string) => fields.get(name)?.trim() ?? ""
  const wheres = formConditions.filter((at) => text(`field${at}`) !== "").map((at) =>
    element("where", {
      field: text(`field${at}`),
      op: text(`op${at}`),
      value: fields.get(`value${at}`) ?? ""
    })
  )
  const order = text("order")
  const named = (name: string) => text(name) === "" ? undefined : element(name, {}, text(name))
  return element(
    "query",
    { on: text("on") },
    named("title"),
    wheres.length === 0 ? undefined : element(text("match") || "all", {}, ...wheres),
    named("return"),
    order === "" ? undefined : element("order", { by: order, direction: text("direction") }),
    named("limit")
  )
}

const makeForm = (): Html =>
  form({
    id: "make",
    action: collectionPath,
    legend: "Make a query",
    controls: controls() ?? [],
    submit: "Make"
  })

const resultPath = (id: string, { on }: Query): string =>
  `/${on}?query=${encodeURIComponent(queryPath(id))}`

const changeForms = (action: string, query: Query): Html => {
  const given = controls(query)
  return html`${
    given === undefined
      ? nothing
      : form({
        id: "change",
        action,
        legend: "Change this query",
        controls: given,
        submit: "Change"
      })
  }${
    form({
      id: "delete",
      action,
      legend: "Remove this query",
      controls: [{ name: "method", label: "", type: "hidden", value: "delete" }],
      submit: "Remove"
    })
  }`
}

/** A query; `secret` is what lets it be changed, for those who came with it. */
export const queryView = (
  service: Service,
  id: string,
  value: string,
  secret?: string
): View => {
  const { query } = parseStored(value)
  const tree = queryElement(query, uri(service, queryPath(id)))
  const result = resultPath(id, query)
  const edit = secret === undefined ? undefined : `${queryPath(id)}~${secret}`
  return {
    title: titleOf(query),
    tree,
    links: [
      { rel: "related", href: result, title: "What it finds" },
      collectionLink,
      ...edit === undefined ? [] : [{ rel: "edit", href: uri(service, edit) }]
    ],
    forms: html`<p>${link(result, "What it finds")}</p>
${changeForms(edit ?? queryPath(id), query)}`
  }
}

/** The caller's own queries, and the form that makes one. */
export const queriesView = (
  service: Service,
  stored: ReadonlyArray<{ readonly id: string; readonly query: Query }>,
  links: ReadonlyArray<Link>
): View => ({
  title: "Queries",
  tree: element(
    "queries",
    {},
    ...stored.map(({ id, query: { on, title } }) =>
      element("query", { href: uri(service, queryPath(id)), on, title })
    )
  ),
  links,
  body: () =>
    html`<p>A query that is too much for an address is a resource of its own:
make it here, then read what it finds. Only your own are listed here, when you are signed in.</p>
${
      stored.length === 0 ?
        html`<p id="empty">There are none.</p>` :
        html`<ul>${
          stored.map(({ id, query }) =>
            html`<li>${link(queryPath(id), titleOf(query))}</li>
`
          )
        }</ul>`
    }
`,
  forms: makeForm()
})
