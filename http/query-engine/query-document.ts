/** Queries as documents: parsing with an error that names the broken rule, and writing. */
import { spaces } from "../formats/openapi/index.ts"
import { childrenOf, type Element, element, failure, isText, type Result, success,
  textOf } from "../formats/xml/index.ts"
import { conditionDepthMax, conditionNodesMax, queryLimitMax, returnFieldsMax, titleCharsMax,
  valueCharsMax } from "../limits.ts"
import { isOperator, operators, type RowCondition, type RowQuery,
  textOperators } from "./condition.ts"
import { fieldOf, isDecimal, type TableSchema } from "./table-fields.ts"

/** The message is the rule that a document breaks. */
class RuleBroken extends Error {}

const reject = (rule: string): never => {
  throw new RuleBroken(rule)
}

/** The names of the fields of a table, its key among them. */
export const fieldNames = (table: TableSchema): ReadonlyArray<string> => [
  table.key,
  ...table.fields.map(({ name }) => name)
]

const knownField = (table: TableSchema, name: string | undefined, where: string) => {
  const field = name === undefined ? undefined : fieldOf(table, name)
  return field ??
    reject(`${where}: the fields of ${table.name} are ${fieldNames(table).join(", ")}`)
}

const conditionNames = new Set(["all", "any", "not", "where"])

const whereOf = (table: TableSchema, node: Element): RowCondition => {
  const { field: name, op = "eq", value = textOf(node) } = node.attributes
  const field = knownField(table, name?.trim(), "where")
  const operator = op.trim()
  if (!isOperator(operator)) return reject(`where: the operators are ${operators.join(", ")}`)
  if (childrenOf(node).length > 0) return reject("where has no elements in it")
  if (value.length > valueCharsMax || !isText(value)) {
    return reject(`where: a value has ${valueCharsMax} characters at the most`)
  }
  const { kind } = field
  if (textOperators.has(operator)) {
    return kind === "text"
      ? { _tag: "where", field: field.name, op: operator, value }
      : reject(`where: ${field.name} is a number, which ${operator} cannot look into`)
  }
  const number = value.trim()
  if (kind === "number" && !/^-?\d{1,9}$/.test(number)) {
    return reject(`where: ${field.name} is compared with a whole number`)
  }
  if (kind === "decimal" && !isDecimal(number)) {
    return reject(`where: ${field.name} is compared with a decimal number`)
  }
  return {
    _tag: "where",
    field: field.name,
    op: operator,
    value: kind === "text" ? value : number
  }
}

interface ConditionCount {
  nodes: number
}

const conditionOf = (
  table: TableSchema,
  node: Element,
  depth: number,
  count: ConditionCount
): RowCondition => {
  if (++count.nodes > conditionNodesMax) {
    return reject(`a query has ${conditionNodesMax} conditions at the most`)
  }
  if (depth > conditionDepthMax) {
    return reject(`conditions stand in each other ${conditionDepthMax} deep at the most`)
  }
  if (node.name === "where") return whereOf(table, node)
  const inner = childrenOf(node)
  const other = inner.find(({ name }) => !conditionNames.has(name))
  if (other !== undefined) return reject(`${node.name} has no element ${other.name} in it`)
  const of = inner.map((child) => conditionOf(table, child, depth + 1, count))
  if (node.name === "all" || node.name === "any") return { _tag: node.name, of }
  const [one] = of
  return one !== undefined && of.length === 1
    ? { _tag: "not", of: one }
    : reject("not has one condition in it")
}

/** The names in a list: spaces, plus signs or commas separate them. */
const namesIn = (text: string): ReadonlyArray<string> => [
  ...new Set(text.split(/[\s+,]+/).filter((name) => name !== ""))
]

/** The pattern of a list of fields of these tables. */
export const fieldsPattern = (tables: ReadonlyArray<TableSchema>): string => {
  const name = `(${[...new Set(tables.flatMap(fieldNames))].join("|")})`
  const space = `[${spaces}+,]`
  return `^${space}*(${name}(${space}+${name})*${space}*)?$`
}

/** The fields in a list, or the rule that it breaks. */
export const fieldsIn = (
  table: TableSchema,
  text: string
): Result<ReadonlyArray<string>, string> => {
  const names = namesIn(text)
  const unknown = names.find((name) => fieldOf(table, name) === undefined)
  if (unknown !== undefined || names.length > returnFieldsMax) {
    return failure(`return: the fields of ${table.name} are ${fieldNames(table).join(", ")}`)
  }
  return success(names)
}

const orderOf = (table: TableSchema, node: Element): RowQuery["order"] => {
  const { by, direction = "asc" } = node.attributes
  const field = knownField(table, by?.trim(), "order")
  if (direction !== "asc" && direction !== "desc") return reject("order: direction is asc or desc")
  return { by: field.name, descending: direction === "desc" }
}

const limitOf = (text: string): number => {
  const limit = text.trim()
  return /^[1-9]\d{0,9}$/.test(limit) && Number(limit) <= queryLimitMax
    ? Number(limit)
    : reject(`limit is a whole number from 1 to ${queryLimitMax}`)
}

const single = (root: Element, name: string): Element | undefined => {
  const [first, second] = childrenOf(root, name)
  return second === undefined ? first : reject(`a query has one ${name} at the most`)
}

const otherNames = new Set(["title", "return", "order", "limit"])

const titleOf = (root: Element): string | undefined => {
  const node = single(root, "title")
  const title = node === undefined ? "" : textOf(node).trim()
  if (title.length > titleCharsMax) reject(`title has ${titleCharsMax} characters at the most`)
  return title === "" ? undefined : title
}

const returnOf = (table: TableSchema, root: Element): ReadonlyArray<string> | undefined => {
  const node = single(root, "return")
  const fields = fieldsIn(table, node === undefined ? "" : textOf(node))
  if (!fields.ok) return reject(fields.fault)
  return fields.value.length === 0 ? undefined : fields.value
}

const readQuery = (tables: ReadonlyArray<TableSchema>, root: Element): RowQuery => {
  const on = root.attributes["on"]?.trim()
  const table = tables.find(({ name }) => name === on) ??
    reject(`on is one of ${tables.map(({ name }) => name).join(", ")}`)
  const other = childrenOf(root).find(({ name }) =>
    !conditionNames.has(name) && !otherNames.has(name)
  )
  if (other !== undefined) reject(`a query has no element ${other.name}`)
  const count: ConditionCount = { nodes: 0 }
  const conditions = childrenOf(root).filter(({ name }) => conditionNames.has(name))
    .map((node) => conditionOf(table, node, 1, count))
  const [condition] = conditions
  const [title, fields] = [titleOf(root), returnOf(table, root)]
  const [order, limit] = [single(root, "order"), single(root, "limit")]
  const rowOrder = order === undefined ? undefined : orderOf(table, order)
  return {
    on: table.name,
    ...title === undefined ? {} : { title },
    // Several conditions must all hold.
    ...condition === undefined
      ? {}
      : { condition: conditions.length === 1 ? condition : { _tag: "all", of: conditions } },
    ...fields === undefined ? {} : { fields },
    ...rowOrder === undefined ? {} : { order: rowOrder },
    ...limit === undefined ? {} : { limit: limitOf(textOf(limit)) }
  }
}

/** The query of a document, or the rule that it breaks. */
export const queryIn = (
  tables: ReadonlyArray<TableSchema>,
  root: Element
): Result<RowQuery, string> => {
  try {
    return success(readQuery(tables, root))
  } catch (error) {
    if (error instanceof RuleBroken) return failure(error.message)
    throw error
  }
}

/** A condition as an element. */
export const conditionElement = (condition: RowCondition): Element => {
  switch (condition._tag) {
    case "where": {
      const { field, op, value } = condition
      return element("where", { field, op, value })
    }
    case "not":
      return element("not", {}, conditionElement(condition.of))
    default:
      return element(condition._tag, {}, ...condition.of.map(conditionElement))
  }
}

/** A query as its document. */
export const queryElement = (query: RowQuery, href?: string, expires?: string): Element => {
  const { condition, fields, limit, on, order, title } = query
  return element(
    "query",
    { on, href, expires },
    title === undefined ? undefined : element("title", {}, title),
    condition === undefined ? undefined : conditionElement(condition),
    fields === undefined ? undefined : element("return", {}, fields.join(" ")),
    order === undefined
      ? undefined
      : element("order", { by: order.by, direction: order.descending ? "desc" : "asc" }),
    limit === undefined ? undefined : element("limit", {}, limit)
  )
}
