/** The forms that make and change queries: one of fields, one for the document itself. */
import type { Control, HtmlForm } from "../../formats/html/index.ts"
import type { FormFields } from "../../formats/index.ts"
import { childrenOf, type Element, element, writeElement } from "../../formats/xml/index.ts"
import { titleCharsMax, valueCharsMax } from "../../limits.ts"
import { fieldNames, type Operator, operators, type RowCondition, type RowQuery,
  type TableSchema } from "../../query-engine/index.ts"
import { customersTable } from "../customers/index.ts"
import { quotesTable } from "../quotes/index.ts"
import { collectionPath } from "../rows/index.ts"

export const tables: ReadonlyArray<TableSchema> = [customersTable, quotesTable]

export const tableOf = ({ on }: RowQuery): TableSchema =>
  on === "customers" ? customersTable : quotesTable

/* The tables that queries are about. */

/** Conditions that a form has room for. */
const formConditions = [1, 2, 3]

/** The conditions of a query as a form shows them; undefined where it cannot. */
const simple = (condition: RowCondition | undefined) => {
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
    width: "third",
    value: where?.field ?? "",
    options: [["", "none"], ...every(fields)]
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

/** The controls of a query's form; undefined for one that it has no room for. */
export const controls = (query?: RowQuery): ReadonlyArray<Control> | undefined => {
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
      width: "half",
      value: query?.on ?? "customers",
      options: every(tables.map(({ name }) => name))
    },
    {
      name: "match",
      label: "Match",
      type: "select",
      width: "half",
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
      width: "third",
      value: order?.by ?? "",
      options: [["", "the usual order"], ...every(fields)]
    },
    {
      name: "direction",
      label: "Direction",
      type: "select",
      width: "third",
      value: order?.descending === true ? "desc" : "asc",
      options: [["asc", "upwards"], ["desc", "downwards"]]
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

/** The form that makes a query. */
export const makeForm = (): HtmlForm => ({
  id: "make",
  action: collectionPath,
  legend: "Make a query",
  controls: controls() ?? [],
  submit: "Make"
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

/** A document as a person writes it, a line for each element. */
export const writeIndented = (node: Element, indent = ""): string => {
  const children = childrenOf(node)
  if (children.length === 0) return `${indent}${writeElement(node)}\n`
  const opening = writeElement({ ...node, children: [] }).replace(/\/>$/, ">")
  const inside = children.map((child) => writeIndented(child, `${indent}  `)).join("")
  return `${indent}${opening}\n${inside}${indent}</${node.name}>\n`
}

/** The form for what the other has no room for: the document itself. */
export const documentForm = (action: string, document = example): HtmlForm => ({
  id: "write",
  action,
  legend: action === collectionPath ? "Or write the document" : "Change the document",
  controls: [{
    name: "document",
    label: "Query",
    type: "textarea",
    required: true,
    rows: 12,
    code: true,
    value: document,
    hint: "XML: conditions in all, any and not, as deep as it takes."
  }],
  submit: action === collectionPath ? "Make from the document" : "Change the document"
})

/** The form that was sent, so that it can be shown again. */
export const sentForm = (action: string, fields: FormFields): HtmlForm => {
  if (fields.has("document")) return documentForm(action)
  const made = makeForm()
  return action === collectionPath
    ? made
    : { ...made, id: "change", action, legend: "Change this query", submit: "Change" }
}
