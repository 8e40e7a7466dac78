/** Reads one customer from a document, a form, or a line of a file. */
import { childrenOf, type Element, failure, isText, type Result, success,
  textOf } from "../../formats/xml/index.ts"
import type { Row } from "../../query-engine/index.ts"
import { ageMax, customersTable } from "./customer-table.ts"

/** Characters of a text. */
export const textCharsMax = 200

/** Letters, digits, `.`, `_`, `-`; a letter or digit first; at most 64 characters. */
export const isCustomerId = (text: string): boolean =>
  /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(text)

/** The texts of a customer by field, with `id` and `href`. */
export type CustomerInput = Readonly<Record<string, string | undefined>>

export interface CustomerRow {
  readonly id: string
  readonly row: Row
}

const fieldNames = new Set(["id", "href", ...customersTable.fields.map(({ name }) => name)])

/** JSON may write a whole number with a fraction of zeros. */
const whole = /^\d{1,3}(?:\.0{1,9})?$/

/** The fields of a customer, or the rule that they break. */
export const rowOf = (input: CustomerInput): Result<Row, string> => {
  for (const name in input) {
    if (!fieldNames.has(name)) {
      const names = customersTable.fields.map((field) => field.name).join(", ")
      return failure(`there is no field ${JSON.stringify(name.slice(0, 40))}; there are ${names}`)
    }
  }
  const row: Record<string, string | number> = {}
  for (const { kind, name } of customersTable.fields) {
    const text = input[name]?.trim() ?? ""
    if (kind === "number") {
      if (!whole.test(text) || Number(text) > ageMax) {
        return failure(`${name} must be a whole number from 0 to ${ageMax}`)
      }
      row[name] = Number(text)
    } else if (text.length > textCharsMax || !isText(text)) {
      return failure(`${name} has ${textCharsMax} characters at the most, none of them control`)
    } else if (text !== "") row[name] = text
  }
  return row["name"] === undefined ? failure("name is missing") : success(row)
}

/** The id in a row: its own field, or the end of its href. */
export const idIn = ({ href, id }: CustomerInput): string | undefined => {
  const text = id?.trim()
  if (text !== undefined && text !== "") return text
  return /\/customers\/([^/?#]+)$/.exec(href?.trim() ?? "")?.[1]
}

/** A row of a file, which needs an id; or the rule that it breaks. */
export const customerOf = (input: CustomerInput): Result<CustomerRow, string> => {
  const id = idIn(input)
  if (id === undefined) return failure("id is missing")
  if (!isCustomerId(id)) {
    return failure("an id has letters, digits, '.', '_' and '-', and 64 characters at the most")
  }
  const row = rowOf(input)
  return row.ok ? success({ id, row: row.value }) : row
}

/** The fields of an element: its attributes, and the texts of its children. */
export const customerInputIn = (node: Element): Result<CustomerInput, string> => {
  const fields: Record<string, string> = { ...node.attributes }
  for (const child of childrenOf(node)) {
    if (Object.hasOwn(fields, child.name)) return failure(`${child.name} occurs twice`)
    fields[child.name] = textOf(child)
  }
  return success(fields)
}
