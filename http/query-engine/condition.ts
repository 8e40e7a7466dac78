/** The conditions of a query, as filters of rows and as bounds of an index. Pure. */
import { streamSafe } from "../../actors/index.ts"
import { compareValues, fieldOf, type Row, type TableField,
  type TableSchema } from "./table-fields.ts"

export const operators = [
  "eq",
  "ne",
  "lt",
  "le",
  "gt",
  "ge",
  "contains",
  "starts",
  "ends"
] as const

export type Operator = typeof operators[number]

export const isOperator = (text: string): text is Operator =>
  operators.some((operator) => operator === text)

/** The operators that apply to texts only. They ignore letter case. */
export const textOperators: ReadonlySet<Operator> = new Set(["contains", "starts", "ends"])

export type RowCondition =
  | { readonly _tag: "all" | "any"; readonly of: ReadonlyArray<RowCondition> }
  | { readonly _tag: "not"; readonly of: RowCondition }
  | {
    readonly _tag: "where"
    readonly field: string
    readonly op: Operator
    readonly value: string
  }

export interface Order {
  readonly by: string
  readonly descending: boolean
}

/** A whole query. */
export interface RowQuery {
  readonly on: TableSchema["name"]
  readonly title?: string
  readonly condition?: RowCondition
  /** Fields to return; all by default. */
  readonly fields?: ReadonlyArray<string>
  readonly order?: Order
  /** Rows at the most, over all pages. */
  readonly limit?: number
}

export type RowFilter = (row: Row, key: string) => boolean

/** The form of a text that comparisons without case use. */
export const fold = (text: string): string => streamSafe(text).normalize("NFC").toLowerCase()

type Value = string | number | undefined

/** A test of a folded text. */
const textTest = (op: Operator, wanted: string): (folded: string) => boolean => {
  const value = fold(wanted)
  if (op === "contains") return (folded) => folded.includes(value)
  return op === "starts"
    ? (folded) => folded.startsWith(value)
    : (folded) => folded.endsWith(value)
}

/**
 * The folded texts of the row that a filter tests. To fold a text costs more than to search it, so
 * each is folded once for all conditions, and only if one of them needs it.
 */
class FoldedTexts {
  private readonly foldText: typeof fold
  private readonly names: Array<string> = []
  private readonly texts: Array<string | undefined> = []

  constructor(foldText: typeof fold) {
    this.foldText = foldText
  }

  get isEmpty(): boolean {
    return this.names.length === 0
  }

  /** Reads the text of a field of the current row. */
  reader(name: string): (value: Value) => string {
    const at = this.names.includes(name) ? this.names.indexOf(name) : this.names.push(name) - 1
    return (value) => this.texts[at] ??= this.foldText(String(value ?? ""))
  }

  /** The next row is another one. */
  clear(): void {
    this.texts.fill(undefined)
  }
}

const orderTest = (field: TableField, op: Operator, wanted: string): (value: Value) => boolean => {
  const value = field.kind === "number" ? Number(wanted) : wanted
  const order = (actual: Value) => compareValues(field, actual, value)
  switch (op) {
    case "eq":
      return (actual) => order(actual) === 0
    case "ne":
      return (actual) => order(actual) !== 0
    case "lt":
      return (actual) => order(actual) < 0
    case "le":
      return (actual) => order(actual) <= 0
    case "gt":
      return (actual) => order(actual) > 0
    default:
      return (actual) => order(actual) >= 0
  }
}

const filterWith = (
  table: TableSchema,
  condition: RowCondition,
  texts: FoldedTexts
): RowFilter => {
  switch (condition._tag) {
    case "all": {
      const filters = condition.of.map((one) => filterWith(table, one, texts))
      return (row, key) => filters.every((filter) => filter(row, key))
    }
    case "any": {
      const filters = condition.of.map((one) => filterWith(table, one, texts))
      return (row, key) => filters.some((filter) => filter(row, key))
    }
    case "not": {
      const filter = filterWith(table, condition.of, texts)
      return (row, key) => !filter(row, key)
    }
    case "where": {
      const { field: name, op, value } = condition
      const field = fieldOf(table, name)
      if (field === undefined) throw new Error(`${table.name} have no field ${name}`)
      const valueOf = (row: Row, key: string) => name === table.key ? key : row[name]
      if (textOperators.has(op)) {
        const test = textTest(op, value)
        const folded = texts.reader(name)
        return (row, key) => test(folded(valueOf(row, key)))
      }
      const test = orderTest(field, op, value)
      return (row, key) => test(valueOf(row, key))
    }
  }
}

/**
 * A condition as a filter. A missing text counts as empty. The filter keeps the folded texts of the
 * row that it tests: a test of a row must end before the next one begins.
 */
export const filterOf = (
  table: TableSchema,
  condition: RowCondition,
  foldText: typeof fold = fold
): RowFilter => {
  const texts = new FoldedTexts(foldText)
  const filter = filterWith(table, condition, texts)
  if (texts.isEmpty) return filter
  return (row, key) => {
    texts.clear()
    return filter(row, key)
  }
}

/** Comparisons of values that a condition has: the most that a filter makes for one row. */
export const comparisonsOf = (condition: RowCondition | undefined): number => {
  if (condition === undefined) return 0
  switch (condition._tag) {
    case "all":
    case "any":
      return condition.of.reduce((sum, one) => sum + comparisonsOf(one), 0)
    case "not":
      return comparisonsOf(condition.of)
    case "where":
      return 1
  }
}

/** Whole numbers from `low` to `high`; none where `low` is greater. */
export interface NumberRange {
  readonly low: number
  readonly high: number
}

const within = (op: Operator, value: number, all: NumberRange): NumberRange => {
  switch (op) {
    case "eq":
      return { low: value, high: value }
    case "lt":
      return { low: all.low, high: value - 1 }
    case "le":
      return { low: all.low, high: value }
    case "gt":
      return { low: value + 1, high: all.high }
    case "ge":
      return { low: value, high: all.high }
    default:
      return all
  }
}

const both = (one: NumberRange, other: NumberRange): NumberRange => ({
  low: Math.max(one.low, other.low),
  high: Math.min(one.high, other.high)
})

const either = (one: NumberRange, other: NumberRange): NumberRange => {
  if (one.low > one.high) return other
  if (other.low > other.high) return one
  return { low: Math.min(one.low, other.low), high: Math.max(one.high, other.high) }
}

/** Bounds of an indexed field for all rows that the condition accepts. */
export const spanOf = (
  condition: RowCondition | undefined,
  field: string,
  all: NumberRange
): NumberRange => {
  if (condition === undefined) return all
  const spans = () =>
    condition._tag === "all" || condition._tag === "any"
      ? condition.of.map((one) => spanOf(one, field, all))
      : []
  switch (condition._tag) {
    case "all":
      return spans().reduce(both, all)
    case "any":
      return spans().reduce(either, { low: 1, high: 0 })
    case "not":
      return all
    case "where":
      return condition.field === field
        ? both(within(condition.op, Number(condition.value), all), all)
        : all
  }
}
