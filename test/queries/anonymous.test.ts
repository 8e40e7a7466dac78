/** Queries without an account: the quota of a network, and their expiry. */
import { Effect, Exit } from "effect"
import { expect, it } from "vitest"
import { anonymousQueriesMax, anonymousQueryRetentionMs } from "../../http/limits.ts"
import { goneQueries, queriesTable } from "../../actors/account/query-records.ts"
import { addressesTable, assertNetworkQuota, creationChanges, expiryTable, isExpired, networkHash,
  removalChanges, removeExpiredQueries,
  type StoredQuery } from "../../http/resources/rows/query-store.ts"
import { makeMemoryRecords } from "../../runtime/memory/records.ts"

const run = Effect.runPromise

const start = () => {
  const records = makeMemoryRecords()
  let now = 1_000_000
  const service = { records, nowMs: () => now }
  const make = async (id: string, network?: string): Promise<StoredQuery> => {
    const stored: StoredQuery = {
      query: { on: "customers" },
      ...network === undefined ? { owner: "alice" } : { address: networkHash(network) },
      editHash: "",
      createdMs: now
    }
    await run(records.write(creationChanges(id, stored)))
    return stored
  }
  const isAllowed = async (network: string) =>
    Exit.isSuccess(await Effect.runPromiseExit(assertNetworkQuota(service, networkHash(network))))
  const all = async (table: string) => (await run(records.range(table, { limit: 9_999 }))).length
  return { records, service, make, isAllowed, all, pass: (ms: number) => now += ms }
}

it("have a quota for each network, which a removal frees", async () => {
  const { isAllowed, make, records, service } = start()
  const first = await make("q0", "192.0.2.0/24")
  for (let at = 1; at < anonymousQueriesMax; at++) {
    expect(await isAllowed("192.0.2.0/24")).toBe(true)
    await make(`q${at}`, "192.0.2.0/24")
  }
  const failure = await run(Effect.flip(assertNetworkQuota(service, networkHash("192.0.2.0/24"))))
  expect(failure).toMatchObject({
    headers: [["Retry-After", String(anonymousQueryRetentionMs / 1000)]]
  })
  expect(await isAllowed("198.51.100.0/24")).toBe(true)
  await run(records.write(removalChanges("q0", JSON.stringify(first))))
  expect(await isAllowed("192.0.2.0/24")).toBe(true)
})

it("expire, and leave no record", async () => {
  const { all, isAllowed, make, pass, records, service } = start()
  const remaining = await make("kept")
  const removed = await make("removed", "192.0.2.0/24")
  await run(records.write(removalChanges("removed", JSON.stringify(removed))))
  const first = await make("first", "192.0.2.0/24")
  for (let at = 0; at < 450; at++) await make(`some${at}`, "203.0.113.0/24")
  pass(anonymousQueryRetentionMs - 1)
  await make("late", "192.0.2.0/24")
  expect(isExpired(first, service.nowMs())).toBe(false)
  await run(removeExpiredQueries(service))
  expect([await all(queriesTable), await all(goneQueries)]).toEqual([453, 1])
  pass(1)
  expect([isExpired(first, service.nowMs()), isExpired(remaining, service.nowMs())]).toEqual([
    true,
    false
  ])
  // An expired query does not count, though its record remains until the next sweep.
  for (let at = 0; at < anonymousQueriesMax - 2; at++) await make(`more${at}`, "192.0.2.0/24")
  expect(await isAllowed("192.0.2.0/24")).toBe(true)
  await run(removeExpiredQueries(service))
  const left = anonymousQueriesMax - 1
  expect(await all(queriesTable)).toBe(left + 1)
  expect([await all(goneQueries), await all(expiryTable), await all(addressesTable)]).toEqual([
    0,
    left,
    left
  ])
})
