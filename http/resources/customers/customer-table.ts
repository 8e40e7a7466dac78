/** The table of customers: `customers` by id, and the index of their ages beside it. */
import type { RecordChange } from "../../../runtime/index.ts"
import { indexKey, type Row, type TableSchema } from "../../query-engine/index.ts"

/** Digits of `agemin`, which may be any whole number. */
export const ageminDigitsMax = 9

export const ageminMax = 10 ** ageminDigitsMax - 1

/** The greatest valid age. */
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
  // Only `customerChanges` writes these records.
  parse: (value) => JSON.parse(value) as Row
}

/** The ids of removed customers, whose URIs answer 410. */
export const goneCustomers = "customers-gone"

const ageOf = (value: string): number => Number(customersTable.parse(value)["age"])

/**
 * Writes a customer and its entry in the index. `before` is the current record; if it has changed
 * since, a stale key stays in the index.
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
    ...old === undefined || old === entry
      ? []
      : [{ table: index.table, key: old, value: null, markerExpires: true }]
  ]
}

/** Removes a customer and its entry in the index. */
export const customerRemoval = (id: string, before: string): ReadonlyArray<RecordChange> => {
  const { index, name } = customersTable
  if (index === undefined) throw new Error("customers have an index")
  return [
    { table: name, key: id, value: null },
    { table: index.table, key: indexKey(ageOf(before), id), value: null, markerExpires: true },
    { table: goneCustomers, key: id, value: "" }
  ]
}
