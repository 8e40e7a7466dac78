/** The table of customers: `customers` by id, and the index of their ages beside it. */
import type { RecordChange } from "../../../runtime/index.ts"
import { indexKey, type Row, type TableSchema } from "../../query-engine/index.ts"

/** The greatest age that is taken. */
export const ageMax = 150

export const customersTable: TableSchema = {
  name: "customers",
  key: "id",
  fields: [
    { name: "name", kind: "text" },
    { name: "age", kind: "number" },
    { name: "email", kind: "text" },
    { name: "city", kind: "text" },
    { name: "country", kind: "text" }
  ],
  index: { field: "age", table: "customers-by-age", max: ageMax },
  // This service's own text, made by `customerChanges`.
  parse: (value) => JSON.parse(value) as Row
}

/** Customers that are no more: their URIs answer 410. */
export const goneCustomers = "customers-gone"

const ageOf = (value: string): number => Number(customersTable.parse(value)["age"])

/**
 * What makes a row of a customer, in one write: its own record, and the index's. `before` is the
 * record that was there; where it is another by then, a key of the index is left that fits none.
 */
export const customerChanges = (
  id: string,
  value: string,
  before: string | undefined
): ReadonlyArray<RecordChange> => {
  const { index, name } = customersTable
  if (index === undefined) throw new Error("customers have an index")
  const entry = indexKey(ageOf(value), id)
  const old = before === undefined ? undefined : indexKey(ageOf(before), id)
  return [
    { table: name, key: id, value },
    { table: index.table, key: entry, value: "" },
    ...old === undefined || old === entry ? [] : [{ table: index.table, key: old, value: null }]
  ]
}

/** What removes a customer. */
export const customerRemoval = (id: string, before: string): ReadonlyArray<RecordChange> => {
  const { index, name } = customersTable
  if (index === undefined) throw new Error("customers have an index")
  return [
    { table: name, key: id, value: null },
    { table: index.table, key: indexKey(ageOf(before), id), value: null },
    { table: goneCustomers, key: id, value: "" }
  ]
}
