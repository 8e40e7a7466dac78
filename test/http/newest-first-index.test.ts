/** The index of resources, newest first, over the store of each backend. */
import type { Refusal } from "../../runtime/index.ts"
import { Effect } from "effect"
import { afterAll, beforeAll, expect, it } from "vitest"
import type { Call } from "../../http/pipeline/call.ts"
import { cursorOf, type ListingTables, removeListingEntry } from "../../actors/index.ts"
import { addEntry, isCursor, listResources, readEntries } from "../../http/newest-first-index.ts"
import { RequestHeaders } from "../../http/wire/request.ts"
import { type Harness, startService } from "./harness.ts"

let harness: Harness

beforeAll(async () => {
  harness = await startService(() => [])
})
afterAll(() => harness.close())

const index: ListingTables = { table: "index-test", keysTable: "index-test-keys" }

const at = (nowMs: number) => ({ ...harness.service, nowMs: () => nowMs })

const idsOf = async (owner: string, after?: string, limit = 100) => {
  const entries = await harness.run(readEntries(harness.service, index, owner, { after, limit }))
  return entries.map(({ id }) => id)
}

it("lists an owner's resources newest first, and no other owner's", async () => {
  for (
    const [nowMs, owner, id] of [[1000, "ann", "a"], [3000, "ann", "c"], [2000, "ann", "b"], [
      4000,
      "anna",
      "d"
    ]] as const
  ) {
    await harness.run(addEntry(at(nowMs), index, owner, id))
  }
  expect(await idsOf("ann")).toEqual(["c", "b", "a"])
  expect(await idsOf("ann", cursorOf(3000, "c"), 1)).toEqual(["b"])
  expect(await idsOf("anna")).toEqual(["d"])
})

it("keeps the entry of a resource that is added again", async () => {
  await harness.run(addEntry(at(1000), index, "again", "x"))
  await harness.run(addEntry(at(2000), index, "again", "y"))
  await harness.run(addEntry(at(3000), index, "again", "x"))
  expect(await idsOf("again")).toEqual(["y", "x"])
})

it("removes an entry, and may do so twice", async () => {
  await harness.run(addEntry(at(1000), index, "end", "z"))
  await harness.run(removeListingEntry(harness.service.records, index, "z"))
  await harness.run(removeListingEntry(harness.service.records, index, "z"))
  expect(await idsOf("end")).toEqual([])
})

it("holds resources without an owner under their cursors", async () => {
  const common = { table: "index-test-common", keysTable: "index-test-common-keys" }
  await harness.run(addEntry(at(1000), common, "", "first"))
  await harness.run(addEntry(at(2000), common, "", "second"))
  const page = { after: undefined, limit: 10 }
  const entries = await harness.run(readEntries(harness.service, common, "", page))
  expect(entries.map(({ atMs, id }) => [atMs, id])).toEqual([[2000, "second"], [1000, "first"]])
})

const refused = (reason: string): Refusal => ({ _tag: "Refused", reason, detail: undefined })

it("shows a page, removes the entries of ended resources, and links to the next page", async () => {
  for (
    const [at_, id] of [[1000, "one"], [2000, "ended"], [3000, "missing"], [4000, "two"]] as const
  ) {
    await harness.run(addEntry(at(at_), index, "pages", id))
  }
  // A listing reads only the query of a call.
  const headers = new RequestHeaders([])
  const request = { query: "limit=4", headers, remoteAddress: "127.0.0.1" }
  const call = { request } as unknown as Call
  const { next, rows } = await harness.run(
    listResources(
      harness.service,
      call,
      { ...index, owner: "pages", href: "/pages" },
      (id) =>
        Effect.succeed(
          id === "ended"
            ? refused("Gone")
            : id === "missing"
            ? refused("NotFound")
            : `view of ${id}`
        )
    )
  )
  expect(rows).toEqual([
    { id: "two", view: "view of two" },
    { id: "one", view: "view of one" }
  ])
  expect(next).toEqual([{
    rel: "next",
    href: `/pages?limit=4&after=${encodeURIComponent(cursorOf(1000, "one"))}`,
    title: "Next page"
  }])
  // A missing resource may be about to be created.
  expect(await idsOf("pages")).toEqual(["two", "missing", "one"])
})

it("distinguishes cursors from other texts", () => {
  expect(isCursor(cursorOf(Date.now(), "Ab-_9"))).toBe(true)
  for (const text of ["", "x", "123.id", `${cursorOf(0, "a")}/b`, `${"9".repeat(13)}.`]) {
    expect(isCursor(text), text).toBe(false)
  }
})
