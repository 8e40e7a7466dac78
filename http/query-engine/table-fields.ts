/** Tables of rows: their fields, the order of values, and the keys of an index. */
import { byBytes } from "../../runtime/index.ts"

/** The fields of a row as clients sent them; a `number` is an integer from 0 to 999. */
export type Row = Readonly<Record<string, string | number>>

export interface TableField {
  readonly name: string
  /** `decimal`: digits as they were sent, compared as numbers, exactly. */
  readonly kind: "text" | "number" | "decimal"
}

/** A table of records, each row under its key. */
export interface TableSchema {
  readonly name: "customers" | "quotes"
  /** The name of the key among the fields. */
  readonly key: string
  /** The fields without the key, in the order in which representations show them. */
  readonly fields: ReadonlyArray<TableField>
  /** The indexed field, the table of the index, and the greatest value. */
  readonly index?: {
    readonly field: string
    readonly table: string
    readonly max: number
  }
  readonly parse: (value: string) => Row
}

/**
 * The value of a row that replaces `before`. A later version may have given the row fields that
 * this one does not know; it keeps them.
 */
export const replacingValue = (
  table: TableSchema,
  value: string,
  before: string | undefined
): string => {
  if (before === undefined) return value
  const later = Object.entries(table.parse(before)).filter(([name]) =>
    fieldOf(table, name) === undefined
  )
  return later.length === 0
    ? value
    : JSON.stringify({ ...Object.fromEntries(later), ...table.parse(value) })
}

export const fieldOf = (table: TableSchema, name: string): TableField | undefined =>
  name === table.key
    ? { name, kind: "text" }
    : table.fields.find((field) => field.name === name)

/** Digits of an index's number in a key. */
const indexDigits = 3

/** The prefix of the keys of an index for one number. */
export const indexPrefix = (number: number): string =>
  `${String(number).padStart(indexDigits, "0")}/`

/** The key of a row in an index. */
export const indexKey = (number: number, key: string): string => indexPrefix(number) + key

/** The number and the row's key in a key of an index. */
export const indexed = (key: string): { readonly number: number; readonly key: string } => ({
  number: Number(key.slice(0, indexDigits)),
  key: key.slice(indexDigits + 1)
})

const decimalPattern = /^([+-]?)(\d+)(?:\.(\d+))?$/

/** Whether a text is a decimal number: digits, perhaps a sign, perhaps a fraction. */
export const isDecimal = (text: string): boolean => decimalPattern.test(text)

interface Decimal {
  readonly isNegative: boolean
  readonly whole: string
  readonly fraction: string
}

/** An expression anchored at the end would be tried from every zero. */
const withoutLastZeros = (digits: string): string => {
  let end = digits.length
  while (digits[end - 1] === "0") end--
  return digits.slice(0, end)
}

const decimalOf = (text: string): Decimal => {
  const [, sign = "", digits = "0", decimals = ""] = decimalPattern.exec(text) ?? []
  const whole = digits.replace(/^0+/, "")
  const fraction = withoutLastZeros(decimals)
  return { isNegative: sign === "-" && (whole !== "" || fraction !== ""), whole, fraction }
}

const compareSizes = (one: Decimal, other: Decimal): number =>
  one.whole.length - other.whole.length || byBytes(one.whole, other.whole) ||
  byBytes(one.fraction, other.fraction)

/** Orders decimal numbers exactly, however many digits they have. */
export const compareDecimals = (one: string, other: string): number => {
  const a = decimalOf(one)
  const b = decimalOf(other)
  if (a.isNegative !== b.isNegative) return a.isNegative ? -1 : 1
  return a.isNegative ? compareSizes(b, a) : compareSizes(a, b)
}

/** Orders two values of a field; a value that is missing comes first. */
export const compareValues = (
  { kind }: TableField,
  one: string | number | undefined,
  other: string | number | undefined
): number => {
  if (typeof one === "number" && typeof other === "number") return one - other
  if (kind !== "text" && (one === undefined || other === undefined)) {
    return Number(one !== undefined) - Number(other !== undefined)
  }
  const [a, b] = [String(one ?? ""), String(other ?? "")]
  return kind === "decimal" ? compareDecimals(a, b) : byBytes(a, b)
}
