/** The forms that create and change queries: one with fields, and one with the document. */
import { type Control, type HtmlForm, versionControl } from "../../formats/html/index.ts"
import type { FormFields } from "../../formats/index.ts"
import { childrenOf, type Element, element, writeElement } from "../../formats/xml/index.ts"
import { titleCharsMax, valueCharsMax } from "../../limits.ts"
import { fieldNames, type Operator, operators, queryElement, type RowCondition, type RowQuery,
  type TableSchema } from "../../query-engine/index.ts"
import { customersTable } from "../customers/index.ts"
import { quotesTable } from "../quotes/index.ts"
import { collectionPath } from "../rows/index.ts"

/** The tables that queries are about. */
export const tables: ReadonlyArray<TableSchema> = [customersTable, quotesTable]

export const tableOf = ({ on }: RowQuery): TableSchema =>
  on === "customers" ? customersTable : quotesTable

/** The conditions in a form. */
const formConditions = [1, 2, 3]

/** The conditions of a query for a form; undefined when they do not fit into it. */
const formConditionsOf = (condition: RowCondition | undefined) => {
  if (condition === undefined) return { match: "all", wheres: [] }
  if (condition._tag === "where") return { match: "all", wheres: [condition] }
  if (condition._tag === "not") return undefined
  const wheres = condition.of.flatMap((one) => one._tag === "where" ? [one] : [])
  return wheres.length === condition.of.length && wheres.length <= formConditions.length
    ? { match: condition._tag, wheres }
    : undefined
}

const optionsOf = (names: ReadonlyArray<string>): ReadonlyArray<readonly [string, string]> =>
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
    width: "third",
    value: where?.field ?? "",
    options: [["", "none"], ...optionsOf(fields)]
  },
  {
    name: `op${at}`,
    label: `Condition ${at}: operator`,
    type: "select",
    width: "third",
    value: where?.op ?? "eq",
    options: operators.map((operator) => [operator, operatorWords[operator]])
  },
  {
    name: `value${at}`,
    label: `Condition ${at}: value`,
    width: "third",
    value: where?.value ?? "",
    maxlength: valueCharsMax
  }
]

/** The controls of a query's form; undefined when its conditions do not fit into it. */
export const controls = (query?: RowQuery): ReadonlyArray<Control> | undefined => {
  const conditions = formConditionsOf(query?.condition)
  if (conditions === undefined) return undefined
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
      width: "half",
      value: query?.on ?? "customers",
      options: optionsOf(tables.map(({ name }) => name))
    },
    {
      name: "match",
      label: "Match",
      type: "select",
      width: "half",
      value: conditions.match,
      options: [["all", "all of these"], ["any", "any of these"]]
    },
    ...formConditions.flatMap((at) => conditionControls(at, conditions.wheres[at - 1], fields)),
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
      width: "third",
      value: order?.by ?? "",
      options: [["", "the key"], ...optionsOf(fields)]
    },
    {
      name: "direction",
      label: "Direction",
      type: "select",
      width: "third",
      value: order?.descending === true ? "desc" : "asc",
      options: [["asc", "ascending"], ["desc", "descending"]]
    },
    {
      name: "limit",
      label: "Rows at the most",
      width: "third",
      inputmode: "numeric",
      value: String(query?.limit ?? "")
    }
  ]
}

/** The document of a form. */
export const queryElementOf = (fields: FormFields): Element => {
  const text = (name: string) => fields.get(name)?.trim() ?? ""
  const wheres = formConditions.filter((at) => text(`field${at}`) !== "").map((at) =>
    element("where", {
      field: text(`field${at}`),
      op: text(`op${at}`),
      value: fields.get(`value${at}`) ?? ""
    })
  )
  const order = text("order")
  const child = (name: string) => text(name) === "" ? undefined : element(name, {}, text(name))
  return element(
    "query",
    { on: text("on") },
    child("title"),
    wheres.length === 0 ? undefined : element(text("match") || "all", {}, ...wheres),
    child("return"),
    order === "" ? undefined : element("order", { by: order, direction: text("direction") }),
    child("limit")
  )
}

/** The form that creates a query. */
export const creationForm = (): HtmlForm => ({
  id: "make",
  action: collectionPath,
  legend: "Create a query",
  controls: controls() ?? [],
  submit: "Create"
})

const example = `<query on="customers">
  <title>Of age, and not from Utrecht</title>
  <all>
    <where field="age" op="ge" value="21"/>
    <not><where field="city" op="eq" value="Utrecht"/></not>
  </all>
  <return>name age</return>
  <order by="age" direction="desc"/>
  <limit>20</limit>
</query>
`

/** A document with a line for each element. */
export const writeIndented = (node: Element, indent = ""): string => {
  const children = childrenOf(node)
  if (children.length === 0) return `${indent}${writeElement(node)}\n`
  const opening = writeElement({ ...node, children: [] }).replace(/\/>$/, ">")
  const inside = children.map((child) => writeIndented(child, `${indent}  `)).join("")
  return `${indent}${opening}\n${inside}${indent}</${node.name}>\n`
}

/** The form for any query: its document. */
export const documentForm = (
  action: string,
  document = example,
  version?: string
): HtmlForm => ({
  id: "write",
  action,
  legend: action === collectionPath ? "Or write the document" : "Change the document",
  controls: [
    ...action === collectionPath ? [] : [versionControl(version)],
    {
      name: "document",
      label: "Query",
      type: "textarea",
      required: true,
      rows: 12,
      code: true,
      value: document,
      hint: "XML with conditions in all, any and not, at any depth."
    }
  ],
  submit: action === collectionPath ? "Create from the document" : "Change the document"
})

/** The form with fields that changes a query; undefined when its conditions do not fit into it. */
export const changeForm = (
  action: string,
  query?: RowQuery,
  version?: string
): HtmlForm | undefined => {
  const fields = controls(query)
  return fields === undefined ? undefined : {
    id: "change",
    action,
    legend: "Change this query",
    controls: [versionControl(version), ...fields],
    submit: "Change"
  }
}

/** The form of a request that failed; of the `saved` query, if somebody has changed it since. */
export const sentForm = (
  action: string,
  fields: FormFields,
  saved?: { readonly query: RowQuery; readonly version: string }
): HtmlForm => {
  const { query, version } = saved ?? {}
  const document = query === undefined ? undefined : writeIndented(queryElement(query))
  if (fields.has("document")) return documentForm(action, document, version)
  if (action === collectionPath) return creationForm()
  return changeForm(action, query, version) ?? documentForm(action, document, version)
}
