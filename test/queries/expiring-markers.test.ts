/**
 * The marker of a removed index entry may expire, since readers compare entries with
 * their records. The marker of a removed record stays, because its URI answers 410.
 */
import { expect, it } from "vitest"
import { customerChanges, customerRemoval,
  customersTable } from "../../http/resources/customers/customer-table.ts"
import { type CustomerLoad, loadChanges } from "../../http/resources/customers/load.ts"
import { queriesTable } from "../../actors/account/query-records.ts"
import type { StoredQuery } from "../../http/resources/rows/index.ts"
import { removalChanges } from "../../http/resources/rows/query-store.ts"
import type { RecordChange } from "../../runtime/index.ts"

const aged = (age: number) => JSON.stringify({ name: "Ann", age })

const query: Omit<StoredQuery, "owner" | "address"> = {
  query: { on: "customers" },
  editHash: "",
  createdMs: 1
}

const load: CustomerLoad = {
  state: "pending",
  format: "csv",
  blob: "load=1",
  rows: 0,
  skipped: 0,
  problems: [],
  at: 0,
  created: 0,
  replaced: 0,
  startedMs: 1,
  touchedMs: 1
}

/** Tables from which the changes remove, and whether the store may forget it. */
const removals = (changes: ReadonlyArray<RecordChange>) =>
  changes.flatMap(({ markerExpires = false, table, value }) =>
    value === null ? [[table, markerExpires]] : []
  )

it("lets the markers of index entries expire", () => {
  expect(removals(customerChanges("c1", aged(30), aged(29)))).toEqual([["customers-by-age", true]])
  expect(removals(customerChanges("c1", aged(30), aged(30)))).toEqual([])
  expect(removals(customerRemoval("c1", aged(30))))
    .toEqual([[customersTable.name, false], ["customers-by-age", true]])
  expect(removals(loadChanges("l1", load))).toEqual([])
  expect(removals(loadChanges("l1", { ...load, state: "done" }))).toHaveLength(1)
  expect(removals(loadChanges("l1", { ...load, state: "done" }))[0]?.[1]).toBe(true)
  for (const [owner, table] of [["ann", "queries-by-owner"], [undefined, "queries-by-address"]]) {
    const stored = JSON.stringify(owner === undefined ? query : { ...query, owner })
    expect(removals(removalChanges("q1", stored)).filter(([of]) => of !== queriesTable))
      .toEqual([[table, true]])
  }
})
