/** What owners have stored: the records equal the bytes, whatever fails. */
import { Effect } from "effect"
import { array, assert, asyncProperty, constantFrom, integer, nat, record } from "fast-check"
import { describe, expect, it } from "vitest"
import { contentOverheadBytes, prepaidBlockBytes, reservationsMax,
  usageShownMs } from "../../actors/limits.ts"
import { contentListingTable, reservationsTable, UsageLedger } from "../../actors/usage/ledger.ts"
import { networkKey, type StoredUsage, type UsageChange,
  type UsageLimits } from "../../actors/usage/usage.ts"
import { type RecordsApi, StorageUnavailable } from "../../runtime/index.ts"
import { makeMemoryRecords } from "../../runtime/memory/records.ts"

const limits: UsageLimits = {
  anonymousBytesMax: 100_000,
  networkBytesMax: 50_000,
  accountBytesMax: 100_000
}

const nowMs = Date.UTC(2026, 0, 1, 12)

const run = Effect.runPromise

const openRecords = async (): Promise<RecordsApi> => makeMemoryRecords()

const reserve = (
  contentId: string,
  id: string,
  bytes: number,
  owner?: string,
  network?: string
): UsageChange => ({
  _tag: "Reserve",
  contentId,
  publication: { atMs: nowMs, ...owner === undefined ? {} : { owner } },
  reservation: {
    id,
    bytes,
    dueMs: nowMs + 1_000,
    ...network === undefined ? {} : { network: networkKey(network, nowMs) }
  }
})

const body = (blobId: string, generation: number, lengthBytes: number): StoredUsage => ({
  _tag: "Body",
  blobId,
  generation,
  lengthBytes
})

const settle = (contentId: string, stored: StoredUsage): UsageChange => ({
  _tag: "Settle",
  contentId,
  stored
})

const counts = (bytes: number) => bytes + contentOverheadBytes

describe("a reservation", () => {
  it("counts until the body does, and is given back when nothing is stored", async () => {
    const ledger = new UsageLedger(await openRecords(), limits)
    expect(await run(ledger.submit(reserve("c", "b1", 1_000, "alice")))).toEqual({
      _tag: "Counted"
    })
    expect(await run(ledger.total("alice"))).toEqual({ bytes: counts(1_000), contents: 1 })
    // A repetition, and a larger one in its place.
    await run(ledger.submit(reserve("c", "b1", 1_000, "alice")))
    await run(ledger.submit(reserve("c", "b1", 2_000, "alice")))
    expect(await run(ledger.total("alice"))).toEqual({ bytes: counts(2_000), contents: 1 })
    for (let times = 0; times < 2; times++) {
      await run(ledger.submit(settle("c", body("b1", 1, 700))))
      expect(await run(ledger.total("alice"))).toEqual({ bytes: counts(700), contents: 1 })
    }
    const cancel: UsageChange = { _tag: "Cancel", contentId: "c", reservationId: "b2" }
    await run(ledger.submit(reserve("c", "b2", 5_000)))
    for (let times = 0; times < 2; times++) await run(ledger.submit(cancel))
    expect(await run(ledger.total("alice"))).toEqual({ bytes: counts(700), contents: 1 })
    for (let times = 0; times < 2; times++) {
      await run(ledger.submit(settle("c", { _tag: "Removed" })))
      expect(await run(ledger.total("alice"))).toEqual({ bytes: 0, contents: 0 })
    }
  })

  it("beyond a quota is refused with the quota, its use, and what it allows", async () => {
    const ledger = new UsageLedger(await openRecords(), limits)
    const network = "192.0.2.0/24"
    const of = (at: number, bytes: number, owner?: string, from?: string) =>
      run(ledger.submit(reserve(`c${at}`, `b${at}`, bytes, owner, from)))
    expect(await of(1, 40_000, undefined, network)).toEqual({ _tag: "Counted" })
    expect(await of(2, 10_000, undefined, network)).toEqual({
      _tag: "QuotaExceeded",
      quota: "network",
      name: network,
      usedBytes: counts(40_000),
      wantedBytes: counts(10_000),
      maxBytes: 50_000
    })
    expect(await of(3, 40_000)).toEqual({ _tag: "Counted" })
    expect(await of(4, 20_000)).toMatchObject({ quota: "anonymous", maxBytes: 100_000 })
    expect(await of(5, 99_000, "alice")).toMatchObject({ quota: "account", name: "alice" })
    expect(await of(6, 98_000, "alice")).toEqual({ _tag: "Counted" })
    // The network's next day.
    const tomorrow = networkKey(network, nowMs + 86_400_000)
    const later = reserve("c7", "b7", 10_000)
    if (later._tag !== "Reserve") throw new Error("it is a reservation")
    const reservation = { ...later.reservation, network: tomorrow }
    expect(await run(ledger.submit({ ...later, reservation }))).toEqual({ _tag: "Counted" })
  })

  it("counts small records of a network in blocks, and near its quota one by one", async () => {
    const ledger = new UsageLedger(await openRecords(), limits)
    const network = networkKey("192.0.2.0/24", nowMs)
    const take = (bytes: number) => run(ledger.prepaid.take(network, bytes))
    const counted = async () => (await run(ledger.largestNetworks(nowMs)))[0]?.bytes
    for (let at = 0; at < 16; at++) expect(await take(1024)).toEqual({ _tag: "Counted" })
    expect(await counted()).toBe(prepaidBlockBytes)
    // What was not stored is for the next record.
    ledger.prepaid.giveBack(network, 1024)
    expect(await take(1024)).toEqual({ _tag: "Counted" })
    expect(await counted()).toBe(prepaidBlockBytes)
    await run(ledger.submit({ _tag: "Spend", network, bytes: 50_000 - prepaidBlockBytes - 1500 }))
    expect(await take(1024)).toEqual({ _tag: "Counted" })
    expect(await take(1024)).toMatchObject({ _tag: "QuotaExceeded", usedBytes: 50_000 - 476 })
    expect(await take(476)).toEqual({ _tag: "Counted" })
    expect(await counted()).toBe(50_000)
  })

  it("is in what pages show of the largest accounts at once, or after a bounded time", async () => {
    const ledger = new UsageLedger(await openRecords(), limits)
    const recent = (atMs: number) => run(ledger.recentLargestAccounts(atMs))
    await run(ledger.submit(reserve("c1", "b1", 1_000, "alice")))
    const first = [{ name: "alice", bytes: counts(1_000) }]
    expect(await recent(nowMs)).toEqual(first)
    await run(ledger.submit(reserve("c2", "b2", 2_000, "bob")))
    expect(await recent(nowMs + usageShownMs - 1)).toEqual(first)
    const both = [{ name: "bob", bytes: counts(2_000) }, ...first]
    expect(await run(ledger.largestAccounts)).toEqual(both)
    expect(await recent(nowMs + usageShownMs)).toEqual(both)
  })

  it("shares the day of a network with what is stored beside content", async () => {
    const ledger = new UsageLedger(await openRecords(), limits)
    const spend = (bytes: number, network: string, atMs = nowMs) =>
      run(ledger.submit({ _tag: "Spend", network: networkKey(network, atMs), bytes }))
    await run(ledger.submit(reserve("c", "b", 20_000, undefined, "192.0.2.0/24")))
    expect(await spend(20_000, "192.0.2.0/24")).toEqual({ _tag: "Counted" })
    expect(await spend(20_000, "192.0.2.0/24")).toEqual({
      _tag: "QuotaExceeded",
      quota: "network",
      name: "192.0.2.0/24",
      usedBytes: counts(20_000) + 20_000,
      wantedBytes: 20_000,
      maxBytes: 50_000
    })
    expect(await run(ledger.submit(reserve("d", "b", 20_000, undefined, "192.0.2.0/24"))))
      .toMatchObject({ quota: "network" })
    expect(await spend(20_000, "192.0.3.0/24")).toEqual({ _tag: "Counted" })
    expect(await spend(20_000, "192.0.2.0/24", nowMs + 86_400_000)).toEqual({ _tag: "Counted" })
    // It is no content of anybody.
    expect(await run(ledger.total(undefined))).toEqual({ bytes: counts(20_000), contents: 1 })
  })

  it("of a repetition passes a full quota with what is stored, and with no more", async () => {
    const gib = 1024 ** 3
    const quotas = { ...limits, anonymousBytesMax: counts(1), networkBytesMax: counts(1) }
    const ledger = new UsageLedger(await openRecords(), quotas)
    const network = "192.0.2.0/24"
    const repeat = (id: string, bytes: number) =>
      run(ledger.submit(reserve("c", id, bytes, undefined, network)))
    await repeat("b1", 1)
    await run(ledger.submit(settle("c", body("b1", 1, 1))))
    expect(await repeat("b2", gib)).toMatchObject({ _tag: "QuotaExceeded", repeatableBytes: 1 })
    expect(await repeat("b2", 2)).toMatchObject({ _tag: "QuotaExceeded" })
    expect(await repeat("b2", 1)).toEqual({ _tag: "Counted" })
    // It cannot grow beyond that either, as a body in chunks does.
    expect(await repeat("b2", gib)).toMatchObject({ _tag: "QuotaExceeded" })
    // What was never stored is no repetition.
    expect(await run(ledger.submit(reserve("d", "b1", 1)))).not.toHaveProperty("repeatableBytes")
  })

  it("of a replacement may use the bytes that it gives back, but one at a time", async () => {
    const ledger = new UsageLedger(await openRecords(), limits)
    await run(ledger.submit(reserve("c", "b1", 60_000, "alice")))
    await run(ledger.submit(settle("c", body("b1", 1, 60_000))))
    const replace = (id: string): UsageChange => ({
      _tag: "Reserve",
      contentId: "c",
      publication: undefined,
      reservation: { id, bytes: 90_000, dueMs: nowMs }
    })
    expect(await run(ledger.submit(replace("b2")))).toEqual({ _tag: "Counted" })
    expect(await run(ledger.submit(replace("b3")))).toMatchObject({ quota: "account" })
    await run(ledger.submit(settle("c", body("b2", 2, 90_000))))
    expect(await run(ledger.total("alice"))).toEqual({ bytes: counts(90_000), contents: 1 })
    // What the first body has stored is known late, and is no news.
    await run(ledger.submit(settle("c", body("b1", 1, 60_000))))
    expect(await run(ledger.total("alice"))).toEqual({ bytes: counts(90_000), contents: 1 })
  })

  it("is one of few for a content, and of none that is not counted", async () => {
    const ledger = new UsageLedger(await openRecords(), limits)
    for (let at = 0; at < reservationsMax; at++) {
      expect(await run(ledger.submit(reserve("c", `b${at}`, 1)))).toEqual({ _tag: "Counted" })
    }
    expect(await run(ledger.submit(reserve("c", "more", 1)))).toEqual({ _tag: "Busy" })
    const unknown = { ...reserve("d", "b", 1), publication: undefined } as UsageChange
    expect(await run(ledger.submit(unknown))).toEqual({ _tag: "Counted" })
    expect(await run(ledger.entry("d"))).toBeUndefined()
  })
})

/** A content, its blobs, and a ledger whose writes are lost, or kept without an answer. */
describe("the records", () => {
  const steps = array(
    record({
      step: constantFrom("publish", "replace", "cancel", "remove", "lose", "settle", "unknown"),
      content: nat({ max: 2 }),
      bytes: integer({ min: 0, max: 9_000 }),
      node: nat({ max: 1 })
    }),
    { maxLength: 25 }
  )

  it("never count less than is stored, and in the end exactly that", () =>
    assert(
      asyncProperty(steps, async (sequence) => {
        const records = await openRecords()
        let fate: "kept" | "lost" | undefined
        const faulty: RecordsApi = {
          ...records,
          writeIf: (expected, changes) =>
            Effect.suspend(() => {
              const write = fate === "lost" ? Effect.void : records.writeIf(expected, changes)
              const failing = new StorageUnavailable({ detail: "no answer" })
              return fate === undefined ? records.writeIf(expected, changes) : Effect.andThen(
                write,
                Effect.fail(failing)
              )
            })
        }
        const [first, second] = [new UsageLedger(faulty, limits), new UsageLedger(faulty, limits)]
        /** What the contents' actors have committed. */
        const actors = new Map<string, { generation: number; bytes: number; blobId: string }>()
        const removed = new Set<string>()
        const stored = (id: string): StoredUsage => {
          const actor = actors.get(id)
          if (removed.has(id)) return { _tag: "Removed" }
          return actor === undefined
            ? { _tag: "Absent" }
            : body(actor.blobId, actor.generation, actor.bytes)
        }
        const bytesOf = (id: string) => {
          const actor = actors.get(id)
          return actor === undefined || removed.has(id) ? 0 : counts(actor.bytes)
        }
        const all = () => [...actors.keys()].reduce((sum, id) => sum + bytesOf(id), 0)
        for (const [at, { bytes, content, node, step }] of sequence.entries()) {
          const id = `c${content}`
          const ledger = node === 0 ? first : second
          const submit = (change: UsageChange) => run(Effect.option(ledger.submit(change)))
          if (step === "lose") fate = fate === undefined ? "lost" : undefined
          else if (step === "unknown") fate = fate === undefined ? "kept" : undefined
          else if (step === "settle") await submit(settle(id, stored(id)))
          else if (step === "remove") {
            if (actors.has(id)) removed.add(id)
            await submit(settle(id, stored(id)))
          } else {
            const reply = await submit(reserve(id, `b${at}`, bytes))
            if (reply._tag === "None" || reply.value._tag !== "Counted") continue
            if (step === "cancel") {
              await submit({ _tag: "Cancel", contentId: id, reservationId: `b${at}` })
            } else if (!removed.has(id)) {
              const generation = (actors.get(id)?.generation ?? 0) + 1
              actors.set(id, { generation, bytes, blobId: `b${at}` })
              if (step === "publish") await submit(settle(id, stored(id)))
            }
          }
          const { bytes: counted } = await run(first.total(undefined))
          expect(counted).toBeGreaterThanOrEqual(all())
        }
        fate = undefined
        for (const id of ["c0", "c1", "c2"]) {
          await run(
            first.submit({
              _tag: "Settle",
              contentId: id,
              stored: stored(id),
              dueBeforeMs: nowMs + 10_000
            })
          )
        }
        const total = await run(second.total(undefined))
        const contents = [...actors.keys()].filter((id) => !removed.has(id)).length
        expect(total).toEqual({ bytes: all(), contents })
        expect(await run(records.range(reservationsTable, { limit: 10 }))).toEqual([])
        const listed = await run(records.range(contentListingTable, { limit: 10 }))
        expect(listed).toHaveLength(2 * contents)
      }),
      { numRuns: 200 }
    ))

  it("are right when many requests of several nodes change them at once", async () => {
    const records = await openRecords()
    const nodes = [1, 2, 3].map(() => new UsageLedger(records, limits))
    const changes = Array.from({ length: 60 }, (_, at) => reserve(`c${at}`, `b${at}`, 1_000, "bob"))
    const replies = await run(
      Effect.forEach(changes, (change, at) => nodes[at % 3]?.submit(change) ?? Effect.never, {
        concurrency: "unbounded"
      })
    )
    const counted = replies.filter(({ _tag }) => _tag === "Counted").length
    expect(counted).toBe(Math.floor(limits.accountBytesMax / counts(1_000)))
    expect(await run(new UsageLedger(records, limits).total("bob")))
      .toEqual({ bytes: counted * counts(1_000), contents: counted })
  })
})
