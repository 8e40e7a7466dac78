/**
 * 25: the commit that uses a right checks it, and a write applies only to the state that its client
 * read. Of many concurrent changes of one resource exactly one succeeds.
 */
import { afterAll, beforeAll, expect, it } from "vitest"
import { resourceTable } from "../../http/resource-table.ts"
import { adminToken, type Harness, startService } from "../http/harness.ts"

const basic = `admin:${adminToken}`
const writers = 20
let service: Harness

beforeAll(async () => {
  service = await startService(resourceTable)
})
afterAll(() => service.close())

const notification = (n: number) =>
  `<notification><item><description>${n}</description><url>http://a.test/</url></item>` +
  "</notification>"

const countOf = (statuses: ReadonlyArray<number>, status: number): number =>
  statuses.filter((one) => one === status).length

it("of many that change what they saw, one does", async () => {
  await service.send("POST", "/mailboxes", { basic, body: "<mailbox><name>seen</name></mailbox>" })
  for (let round = 0; round < 5; round += 1) {
    const { etag } = await service.send("GET", "/mailboxes/seen", { basic })
    const answers = await Promise.all(
      Array.from({ length: writers }, (_, n) =>
        service.send("PUT", "/mailboxes/seen", {
          basic,
          body: `<mailbox><title>${round}-${n}</title></mailbox>`,
          headers: { "If-Match": etag }
        }))
    )
    const statuses = answers.map(({ status }) => status)
    expect([countOf(statuses, 200), countOf(statuses, 412)]).toEqual([1, writers - 1])
    const winner = answers.findIndex(({ status }) => status === 200)
    const now = await service.send("GET", "/mailboxes/seen", { basic })
    expect(now.xml.attributes["title"]).toBe(`${round}-${winner}`)
  }
})

it("of many that take one name, one gets it", async () => {
  const answers = await Promise.all(
    Array.from(
      { length: writers },
      () =>
        service.send("POST", "/mailboxes", {
          basic,
          body: "<mailbox><name>wanted</name></mailbox>"
        })
    )
  )
  const statuses = answers.map(({ status }) => status)
  expect([countOf(statuses, 201), countOf(statuses, 409)]).toEqual([1, writers - 1])
})

it("what is taken away counts from its answer on, and what was let in before is kept", async () => {
  await service.send("POST", "/mailboxes", { basic, body: "<mailbox><name>open</name></mailbox>" })
  let isClosed = false
  const late: Array<number> = []
  const statuses: Array<number> = []
  const strangers = Array.from({ length: writers }, async (_, n) => {
    for (let round = 0; round < 10; round += 1) {
      const after = isClosed
      const body = notification(n * 100 + round)
      const { status } = await service.send("POST", "/mailboxes/open", { body })
      statuses.push(status)
      if (after) late.push(status)
    }
  })
  const closing = await service.send("PUT", "/mailboxes/open", {
    basic,
    body: "<mailbox><deposit>accounts</deposit></mailbox>"
  })
  isClosed = true
  await Promise.all(strangers)
  expect(closing.status).toBe(200)
  expect(late.length).toBeGreaterThan(0)
  expect(new Set(late)).toEqual(new Set([401]))
  const listed = await service.send("GET", "/mailboxes/open?limit=1000", { basic })
  expect(listed.text.match(/<notification /g) ?? []).toHaveLength(countOf(statuses, 202))
})

it("a revoked token is invalid from then on", async () => {
  const created = await service.send("POST", "/accounts/admin/token", { basic, body: "<token/>" })
  const mine = `admin:${created.child("token")}`
  let isRevoked = false
  const late: Array<number> = []
  const users = Array.from({ length: 5 }, async () => {
    for (let round = 0; round < 10; round += 1) {
      const after = isRevoked
      const { status } = await service.send("GET", "/mailboxes", { basic: mine })
      expect([200, 401]).toContain(status)
      if (after) late.push(status)
    }
  })
  const path = created.header("location").slice(service.base.length)
  expect((await service.send("DELETE", path, { basic })).status).toBe(204)
  isRevoked = true
  await Promise.all(users)
  late.push((await service.send("GET", "/mailboxes", { basic: mine })).status)
  expect(new Set(late)).toEqual(new Set([401]))
})
