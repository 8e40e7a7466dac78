/** Queries without an account: how many one address may have, and that they end. */
import { Effect, Exit } from "effect"
import { expect, it } from "vitest"
import { anonymousQueriesMax, anonymousQueryKeptMs } from "../../http/limits.ts"
import { addressesTable, addressOf, endingChanges, endingTable, goneQueries, isOver, mayMake,
  queriesTable, removalChanges, removeEnded, storedChanges, type StoredQuery,
  storedRemoval } from "../../http/resources/rows/query-store.ts"
import { makeMemoryRecords } from "../../runtime/memory/records.ts"

const run = Effect.runPromise

const start = () => {
  const records = makeMemoryRecords()
  let now = 1_000_000
  const service = { records, nowMs: () => now }
  const make = async (id: string, client?: string): Promise<StoredQuery> => {
    const stored: StoredQuery = {
      query: { on: "customers" },
      ...client === undefined ? { owner: "alice" } : { address: addressOf(client) },
      editHash: "",
      createdMs: now
    }
    const changes = storedChanges(id, JSON.stringify(stored))
    await run(records.write([...changes, ...endingChanges(id, stored)]))
    return stored
  }
  const isAllowed = async (client: string) =>
    Exit.isSuccess(await Effect.runPromiseExit(mayMake(service, client)))
  const all = async (table: string) => (await run(records.range(table, { limit: 9_999 }))).length
  return { records, service, make, isAllowed, all, pass: (ms: number) => now += ms }
}

it("are so many for one address, and one more when one is removed", async () => {
  const { isAllowed, make, records, service } = start()
  const first = await make("q0", "192.0.2.1")
  for (let at = 1; at < anonymousQueriesMax; at++) {
    expect(await isAllowed("192.0.2.1")).toBe(true)
    await make(`q${at}`, "192.0.2.1")
  }
  const failure = await run(Effect.flip(mayMake(service, "192.0.2.1")))
  expect(failure).toMatchObject({
    headers: [["Retry-After", String(anonymousQueryKeptMs / 1000)]]
  })
  expect(await isAllowed("192.0.2.2")).toBe(true)
  const removal = [...storedRemoval("q0", JSON.stringify(first)), ...removalChanges("q0", first)]
  await run(records.write(removal))
  expect(await isAllowed("192.0.2.1")).toBe(true)
})

it("end, and leave nothing", async () => {
  const { all, isAllowed, make, pass, records, service } = start()
  const kept = await make("kept")
  const removed = await make("removed", "192.0.2.1")
  const changes = storedRemoval("removed", JSON.stringify(removed))
  await run(records.write([...changes, ...removalChanges("removed", removed)]))
  const first = await make("first", "192.0.2.1")
  for (let at = 0; at < 450; at++) await make(`some${at}`, "192.0.2.3")
  pass(anonymousQueryKeptMs - 1)
  await make("late", "192.0.2.1")
  expect(isOver(first, service.nowMs())).toBe(false)
  await run(removeEnded(service))
  expect([await all(queriesTable), await all(goneQueries)]).toEqual([453, 1])
  pass(1)
  expect([isOver(first, service.nowMs()), isOver(kept, service.nowMs())]).toEqual([true, false])
  // What has ended is not counted, though it is there until it is removed.
  for (let at = 0; at < anonymousQueriesMax - 2; at++) await make(`more${at}`, "192.0.2.1")
  expect(await isAllowed("192.0.2.1")).toBe(true)
  await run(removeEnded(service))
  const left = anonymousQueriesMax - 1
  expect(await all(queriesTable)).toBe(left + 1)
  expect([await all(goneQueries), await all(endingTable), await all(addressesTable)]).toEqual([
    0,
    left,
    left
  ])
})
