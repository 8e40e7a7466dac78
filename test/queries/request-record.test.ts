/** The records of requests with an Idempotency-Key: their retention, and races between attempts. */
import { Effect } from "effect"
import { expect, it } from "vitest"
import { idempotencyRetentionMs } from "../../actors/limits.ts"
import { randomIds } from "../../http/auth/credentials/index.ts"
import { expiryPage } from "../../http/limits.ts"
import type { Call, Service } from "../../http/pipeline/index.ts"
import { beginRequest, changeOnce, removeExpiredRequests } from "../../http/request-record.ts"
import { createQuery, removalChanges } from "../../http/resources/rows/index.ts"
import { makeMemoryRecords } from "../../runtime/memory/records.ts"

const run = Effect.runPromise

const start = () => {
  const records = makeMemoryRecords()
  let now = 1_000_000
  const wrap = { records, nowMs: () => now }
  // Only these parts of the service are used.
  const service = wrap as unknown as Service
  // A call has its key, and ids that derive from it.
  const callOf = (key: string, firstAtMs?: number) =>
    ({
      key: { hash: key, earlier: firstAtMs === undefined ? undefined : { firstAtMs } },
      ids: { ...randomIds, id: (name: string) => `${key} ${name}` }
    }) as unknown as Call
  const attempt = async (key: string, firstAtMs?: number): Promise<boolean> => {
    const call = callOf(key, firstAtMs)
    const { changes, earlier, expected } = await run(beginRequest(service, call))
    if (earlier !== undefined) return false
    return await run(records.writeIf(expected, changes))
  }
  const count = async () => {
    const both = ["requests", "requests-ending"].map((table) =>
      run(records.range(table, { limit: 9_999 }))
    )
    return (await Promise.all(both)).map((entries) => entries.length)
  }
  return { attempt, callOf, count, service, pass: (ms: number) => now += ms }
}

it("end with their key, and leave nothing", async () => {
  const { attempt, count, pass, service } = start()
  const keys = Array.from({ length: 2 * expiryPage + 1 }, (_, at) => `key ${at}`)
  for (const key of keys) expect(await attempt(key)).toBe(true)
  expect(await attempt("key 7")).toBe(false)
  pass(idempotencyRetentionMs - 1)
  expect(await attempt("key 7")).toBe(false)
  await run(removeExpiredRequests(service))
  expect(await count()).toEqual([keys.length, keys.length])
  pass(1)
  // The key is used again before the sweep has removed its record.
  expect([await attempt("key 7"), await attempt("key 7")]).toEqual([true, false])
  await run(removeExpiredRequests(service))
  expect(await count()).toEqual([1, 1])
  expect(await attempt("key 7")).toBe(false)
})

it("end 24 h after the first use of the key, though a later attempt has written them", async () => {
  const { attempt, count, pass, service } = start()
  const firstAtMs = service.nowMs()
  pass(idempotencyRetentionMs - 1)
  expect(await attempt("k", firstAtMs)).toBe(true)
  expect(await attempt("k", firstAtMs)).toBe(false)
  pass(1)
  await run(removeExpiredRequests(service))
  expect(await count()).toEqual([0, 0])
  expect(await attempt("k")).toBe(true)
})

it("of an ended key are not there, and a query of its id is not made again", async () => {
  const { callOf, pass, service } = start()
  const post = () =>
    run(Effect.result(createQuery(service, callOf("k"), "id", (atMs) => ({
      query: { on: "customers" },
      owner: "alice",
      editHash: "",
      createdMs: atMs
    }))))
  const made = await post()
  expect(made).toMatchObject({ _tag: "Success", success: { createdMs: 1_000_000 } })
  pass(1)
  expect(await post()).toEqual(made)
  pass(idempotencyRetentionMs)
  const conflict = { _tag: "Failure", failure: { problem: { status: 409 } } }
  expect(await post()).toMatchObject(conflict)
  const { records } = service
  const stored = await run(records.get("queries", "id"))
  await run(records.write(removalChanges("id", stored ?? "")))
  expect(await post()).toMatchObject(conflict)
  expect(await run(records.get("queries", "id"))).toBeUndefined()
})

/** An actor that counts its changes, and refuses those for another version. */
const actor = () => {
  const made: Array<number> = []
  let version = 1
  const change = ({ ifVersion }: { readonly ifVersion?: number }) =>
    Effect.sync(() => {
      if (ifVersion !== undefined && ifVersion !== version) {
        return { _tag: "Refused", reason: "PreconditionFailed", detail: undefined } as const
      }
      made.push(version)
      version += 1
      return { _tag: "Done" } as const
    })
  return { change, made, version: Effect.sync(() => version), others: () => version += 1 }
}

it("let a first attempt follow the changes of others, and no later one", async () => {
  const { callOf, service } = start()
  const { change, made, others, version } = actor()
  let between = 3
  const seen = Effect.tap(version, () =>
    Effect.sync(() => {
      if (between-- > 0) others()
    }))
  const changing = changeOnce(service, callOf("k"), seen, change)
  expect(await run(changing)).toEqual({ _tag: "Done" })
  expect(made).toEqual([4])
  // The actor of this test does not recognize its change: it has changed since.
  const failure = await run(Effect.flip(changing))
  expect(failure).toMatchObject({ _tag: "HttpError", problem: { status: 409 } })
  expect(made).toEqual([4])
})

it("do not outlive a refusal", async () => {
  const { callOf, count, service } = start()
  const { change, made, version } = actor()
  const refused = Effect.succeed({ _tag: "Refused", reason: "Full", detail: undefined } as const)
  const first = changeOnce(service, callOf("k"), version, () => refused)
  expect(await run(first)).toMatchObject({ reason: "Full" })
  expect([await count(), made]).toEqual([[0, 0], []])
  expect(await run(changeOnce(service, callOf("k"), version, change))).toEqual({ _tag: "Done" })
})
