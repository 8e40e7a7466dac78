/** The changes of an account that the audit log records are bounded for each day (protocol §7). */
import { Effect } from "effect"
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest"
import { address } from "../../runtime/index.ts"
import { auditedChangesPerDayMax } from "../../actors/limits.ts"
import { childrenOf } from "../../http/formats/xml/index.ts"
import { resourceTable } from "../../http/resource-table.ts"
import { adminToken, type Harness, startService } from "./harness.ts"

const admin = `admin:${adminToken}`
const dayMs = 86_400_000
/** The next midnight but one. A later time would end the retention of the log's entries. */
const midnightMs = (Math.floor(Date.now() / dayMs) + 2) * dayMs
const noonMs = midnightMs - dayMs / 2
let service: Harness
let alice = ""
let bob = ""

const create = async (name: string): Promise<string> => {
  const body = `<account><name>${name}</name></account>`
  const created = await service.send("POST", "/accounts", { basic: admin, body })
  return `${name}:${created.child("token")}`
}

const open = (basic: string, name: string) =>
  service.send("POST", "/mailboxes", { basic, headers: { Slug: name } })

/** Counts all changes that the account may make on this day. */
const spend = (account: string) =>
  service.run(Effect.forEach(
    Array.from({ length: auditedChangesPerDayMax }),
    () => service.service.system.ask(address("account", account), { _tag: "CountChange" }),
    { concurrency: 100, discard: true }
  ))

const entriesOf = async (query: string) =>
  childrenOf((await service.send("GET", `/audit?${query}`, { basic: admin })).xml, "entry")
    .map(({ attributes }) => [attributes["action"], attributes["outcome"]])

beforeAll(async () => {
  service = await startService(resourceTable)
  alice = await create("alice")
  bob = await create("bob")
  expect((await open(alice, "alices")).status).toBe(201)
  expect((await open(bob, "bobs")).status).toBe(201)
  vi.useFakeTimers({ toFake: ["Date"], now: noonMs })
  await spend("alice")
})
afterEach(() => void vi.setSystemTime(noonMs))
afterAll(async () => {
  vi.useRealTimers()
  await service.close()
})

describe("the changes of an account on a day", () => {
  it.each([
    ["a mailbox", "POST", "/mailboxes", { Slug: "another" }],
    ["new secrets", "POST", "/mailboxes/alices/password", {}],
    ["the end of a mailbox", "DELETE", "/mailboxes/alices", {}],
    ["a token", "POST", "/accounts/alice/token", {}],
    ["an export", "GET", "/accounts/alice/export", {}]
  ])("end with 429, which says whose and until when: %s", async (_what, method, path, headers) => {
    const before = await entriesOf("account=alice&outcome=begun&limit=1000")
    const answer = await service.send(method, path, { basic: alice, headers })
    expect([answer.status, answer.header("retry-after")]).toEqual([429, String(12 * 3600)])
    const detail = answer.child("detail")
    expect(detail).toContain(`the account alice has made ${auditedChangesPerDayMax} changes`)
    expect(detail).toContain(new Date(midnightMs).toISOString())
    expect(await entriesOf("account=alice&outcome=begun&limit=1000")).toEqual(before)
  })

  it("end with 429 for a sign-in", async () => {
    const [account = "", token = ""] = alice.split(":")
    const body = new URLSearchParams({ account, token }).toString()
    const type = "application/x-www-form-urlencoded"
    const answer = await service.send("POST", "/sign-in", { body, type, accept: "text/html" })
    expect(answer.status).toBe(429)
    expect(answer.headers.get("set-cookie")).toBeNull()
  })

  it("are refused before anything is done, and the log has the first refusal", async () => {
    expect((await open(alice, "undone")).status).toBe(429)
    expect((await service.send("GET", "/mailboxes/undone", { basic: alice })).status).toBe(404)
    expect((await service.send("GET", "/mailboxes/alices", { basic: alice })).status).toBe(200)
    expect(await entriesOf("account=alice&outcome=refused&action=mailbox.create"))
      .toContainEqual(["mailbox.create", "refused"])
  })

  it("leave the account its reads, deposits, sign-outs and revocations of tokens", async () => {
    const body = "<notification><item><description>d</description>" +
      "<url>http://example.org/</url></item></notification>"
    const deposit = { basic: alice, body, type: "text/xml+rss" }
    expect((await service.send("POST", "/mailboxes/alices", deposit)).status).toBe(202)
    const carol = await create("carol")
    const made = await service.send("POST", "/accounts/carol/token", { basic: carol })
    await spend("carol")
    expect((await open(carol, "carols")).status).toBe(429)
    const token = new URL(made.header("location")).pathname
    expect((await service.send("DELETE", token, { basic: carol })).status).toBe(204)
    const browsers = "/accounts/carol/browser-sessions"
    expect((await service.send("DELETE", browsers, { basic: carol })).status).toBe(204)
  })

  it("are no limit of another account, nor of an admin", async () => {
    expect((await service.send("POST", "/mailboxes/bobs/password", { basic: bob })).status)
      .toBe(200)
    await spend("admin")
    expect((await open(admin, "admins")).status).toBe(201)
    expect((await service.send("DELETE", "/mailboxes/admins", { basic: admin })).status).toBe(204)
  })

  it("start again at 0 on the next day", async () => {
    vi.setSystemTime(midnightMs - 1)
    expect((await open(alice, "tomorrow")).status).toBe(429)
    vi.setSystemTime(midnightMs)
    expect((await open(alice, "tomorrow")).status).toBe(201)
  })
})
