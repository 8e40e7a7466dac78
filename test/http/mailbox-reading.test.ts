/** Reading mailboxes (A11): rights, pages, representations. */
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { childrenOf } from "../../http/formats/xml/index.ts"
import { retrievalRecordedMs } from "../../http/limits.ts"
import type { Service } from "../../http/pipeline/service.ts"
import { keptBytes } from "../../http/resources/mailboxes/mailbox-reading.ts"
import { adminToken } from "./harness.ts"
import { descriptions, type Mailboxes, owner, startMailboxes, timeOf } from "./mailbox-harness.ts"

let service: Mailboxes

beforeAll(async () => {
  service = await startMailboxes()
})

afterAll(() => service.close())

describe("A11: reading", () => {
  test("the owner, the password and the secret URI may; others 401, 403, 404", async () => {
    const { href, password, shared } = await service.open("rights")
    await service.deposit(href, "one")
    expect(descriptions(await service.send("GET", href, { basic: owner }))).toEqual(["one"])
    const bearer = await service.send("GET", href, {
      headers: { authorization: `Bearer ${adminToken}` }
    })
    expect(descriptions(bearer)).toEqual(["one"])
    const byPassword = await service.send("GET", href, { basic: `who-ever:${password}` })
    expect(descriptions(byPassword)).toEqual(["one"])
    expect(byPassword.header("cache-control")).toContain("private")
    const bySecret = await service.send("GET", shared)
    expect(descriptions(bySecret)).toEqual(["one"])
    expect(bySecret.header("x-robots-tag")).toBe("noindex")
    const entry = childrenOf(bySecret.xml, "notification")[0]?.attributes["href"] ?? ""
    expect(entry.startsWith(`${shared}/notifications/`)).toBe(true)
    expect((await service.send("GET", entry)).status).toBe(200)
    const nobody = await service.send("GET", href)
    expect(nobody.status).toBe(401)
    expect(nobody.header("www-authenticate")).toContain("Basic")
    expect(nobody.header("link")).toContain(`<${href}>; rel="mailbox"`)
    expect((await service.send("GET", href, { basic: "x:wrong-password" })).status).toBe(401)
    expect((await service.send("GET", href, { basic: service.bob })).status).toBe(403)
    expect((await service.send("GET", `${href}~wrong`)).status).toBe(404)
    expect((await service.send("GET", "/mailboxes/no-such", { basic: owner })).status).toBe(404)
  })

  test("since, limit, next: oldest first, full pages over gaps, nothing missed", async () => {
    const { href } = await service.open("pages")
    const before = timeOf(await service.send("GET", href, { basic: owner }))
    expect(before).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{15}Z$/)
    const locations: Array<string> = []
    for (let i = 1; i <= 7; i++) {
      locations.push((await service.deposit(href, `n${i}`)).header("location"))
    }
    for (const at of [1, 2]) {
      await service.send("DELETE", locations[at] ?? "", { basic: owner })
    }
    const first = await service.send("GET", `${href}?limit=3&since=${before}`, { basic: owner })
    expect(descriptions(first)).toEqual(["n1", "n4", "n5"])
    const next = /<([^>]*)>; rel="next"/.exec(first.header("link"))?.[1] ?? ""
    const second = await service.send("GET", next, { basic: owner })
    expect(descriptions(second)).toEqual(["n6", "n7"])
    expect(second.header("link")).not.toContain("next")
    const time = timeOf(second)
    expect(time > timeOf(first)).toBe(true)
    const third = await service.send("GET", `${href}?since=${time}`, { basic: owner })
    expect(descriptions(third)).toEqual([])
    expect(timeOf(third)).toBe(time)
    await service.deposit(href, "n8")
    const fourth = await service.send("GET", `${href}?since=${time}`, { basic: owner })
    expect(descriptions(fourth)).toEqual(["n8"])
    const day = encodeURIComponent(new Date(Date.now() - 86_400_000).toISOString())
    const all = await service.send("GET", `${href}?since=${day}`, { basic: owner })
    expect(descriptions(all)).toHaveLength(6)
    const none = await service.send("GET", `${href}?since=2199-01-01T00:00:00+01:00`, {
      basic: owner
    })
    expect([none.status, descriptions(none)]).toEqual([200, []])
    for (
      const query of [
        "since=yesterday",
        "limit=0",
        "limit=1001",
        "limit=x",
        "since=",
        "limit=1&limit=2"
      ]
    ) {
      expect((await service.send("GET", `${href}?${query}`, { basic: owner })).status).toBe(400)
    }
  })

  test("every representation, ETag, 304, HEAD, 406", async () => {
    const { href } = await service.open("kinds", "<title>Kinds &amp; co</title>")
    await service.deposit(href, "a &lt; b")
    const types = [
      "application/xml",
      "text/xml",
      "application/json",
      "text/plain",
      "text/html",
      "application/atom+xml",
      "application/rss+xml"
    ]
    const tags = new Set<string>()
    for (const accept of types) {
      const answer = await service.send("GET", href, { basic: owner, accept })
      expect([accept, answer.status]).toEqual([accept, 200])
      expect(answer.header("content-type")).toContain(accept)
      expect(answer.header("vary")).toContain("Accept")
      expect(answer.header("link")).toContain("rel=\"mailbox\"")
      tags.add(answer.etag)
      const repeated = await service.send("GET", href, {
        basic: owner,
        accept,
        headers: { "if-none-match": answer.etag }
      })
      expect([repeated.status, repeated.text]).toEqual([304, ""])
      const head = await service.send("HEAD", href, { basic: owner, accept })
      expect([head.status, head.etag, head.text]).toEqual([200, answer.etag, ""])
    }
    expect(tags.size).toBe(types.length)
    const xml = await service.send("GET", href, { basic: owner })
    expect(xml.xml.attributes["title"]).toBe("Kinds & co")
    expect(descriptions(xml)).toEqual(["a < b"])
    const json = await service.send("GET", href, { basic: owner, accept: "application/json" })
    expect(json.json).toMatchObject({
      href,
      title: "Kinds & co",
      notification: [{ item: { description: "a < b" } }]
    })
    const no = await service.send("GET", href, { basic: owner, accept: "image/png" })
    expect(no.status).toBe(406)
    expect(no.text).toContain("application/atom+xml")
    expect(no.header("link")).toContain(`<${href}>; rel="mailbox"`)
    const other = { basic: owner, headers: { "if-match": "\"another\"" } }
    const unlike = await service.send("GET", href, other)
    expect([unlike.status, unlike.header("link")]).toEqual([412, no.header("link")])
    await service.deposit(href, "another")
    expect((await service.send("GET", href, { basic: owner })).etag).not.toBe(xml.etag)
  })

  test("pages for people: deposit for anybody, read for readers, safe text", async () => {
    const { href, shared } = await service.open("people")
    const browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
    const publicPage = await service.send("GET", href, { accept: browser })
    expect(publicPage.status).toBe(200)
    expect(publicPage.text).toContain(`<link rel="mailbox" href="${href}">`)
    expect(publicPage.text).toContain("name=\"description\"")
    expect(publicPage.text).toContain("?read=")
    expect((await service.send("GET", `${href}?read=`, { accept: browser })).status).toBe(401)
    expect((await service.send("GET", "/mailboxes/no-such", { accept: browser })).status).toBe(404)
    const evil = "<notification><item><description>&lt;script&gt;x&lt;/script&gt;</description>" +
      "<url>javascript:alert(1)</url></item></notification>"
    await service.send("POST", href, { body: evil })
    const reader = await service.send("GET", shared, { accept: browser })
    expect(reader.text).toContain("&lt;script&gt;x")
    expect(reader.text).not.toContain("href=\"javascript:")
    expect(reader.text).toContain("<script src=\"/live.js\" defer>")
    expect(reader.text).toContain("type=\"application/atom+xml\"")
    expect(reader.text).toContain("aria-live=\"polite\"")
  })

  test("ten wrong passwords, then 429 with Retry-After", async () => {
    const { href, password } = await service.open("guess")
    const statuses: Array<number> = []
    for (let i = 0; i < 12; i++) {
      statuses.push((await service.send("GET", href, { basic: `x:guess-${i}` })).status)
    }
    expect(statuses.at(-1)).toBe(429)
    const right = await service.send("GET", href, { basic: `x:${password}` })
    expect(right.status).toBe(429)
    expect(Number(right.header("retry-after"))).toBeGreaterThan(0)
    expect((await service.send("GET", href, { basic: owner })).status).toBe(200)
  })
})

test("an admin removes a notification of any mailbox, but does not read it", async () => {
  const opened = await service.send("POST", "/mailboxes", {
    basic: service.bob,
    headers: { Slug: "moderated" }
  })
  const href = opened.header("location")
  const location = (await service.deposit(href, "spam")).header("location")
  expect((await service.send("GET", location, { basic: owner })).status).toBe(403)
  expect((await service.send("DELETE", location)).status).toBe(401)
  const unknown = `${href}/notifications/1-${"A".repeat(22)}`
  expect((await service.send("DELETE", unknown, { basic: owner })).status).toBe(404)
  expect((await service.send("DELETE", location, { basic: owner })).status).toBe(204)
  expect((await service.send("GET", location, { basic: service.bob })).status).toBe(410)
  expect((await service.send("DELETE", href, { basic: owner })).status).toBe(204)
})

describe("a cached listing", () => {
  const startMs = Date.now()
  /** Reports of retrievals that were sent, those with an answer, and reads of the log. */
  const counts = { sent: 0, answered: 0, reads: 0 }
  let forwardMs = 0
  let counted: Mailboxes

  const counting = (service: Service): Service => ({
    ...service,
    nowMs: () => startMs + forwardMs,
    system: {
      ...service.system,
      read: (...parameters) => {
        counts.reads++
        return service.system.read(...parameters)
      },
      askByCallback: (to, message, done, trace) => {
        if (message._tag !== "Retrieved") {
          return service.system.askByCallback(to, message, done, trace)
        }
        counts.sent++
        service.system.askByCallback(to, message, (failure, reply) => {
          done(failure, reply)
          counts.answered++
        }, trace)
      }
    }
  })

  beforeAll(async () => {
    counted = await startMailboxes(counting)
  })

  afterAll(() => counted.close())

  /** Reads the mailbox twice at each node; the reports that this causes. */
  const reportsOfReading = async (href: string): Promise<number> => {
    const before = counts.sent
    for (const node of [...counted.nodes, ...counted.nodes]) {
      const uri = `${node}${new URL(href).pathname}`
      expect(descriptions(await counted.send("GET", uri, { basic: owner }))).toEqual(["one"])
      await expect.poll(() => counts.answered === counts.sent, { timeout: 60_000 }).toBe(true)
    }
    return counts.sent - before
  }

  test("is reported as retrieved until it is recorded, and again after a while", async () => {
    const { href } = await counted.open("reported")
    await counted.deposit(href, "one")
    const nodes = counted.nodes.length
    expect(await reportsOfReading(href)).toBe(2 * nodes)
    // Now each node caches it, and reports it once more from there.
    await reportsOfReading(href)
    expect(await reportsOfReading(href)).toBe(0)
    forwardMs = retrievalRecordedMs
    expect(await reportsOfReading(href)).toBe(nodes)
  })

  test("is kept once it has been asked for again", async () => {
    const { href } = await counted.open("asked")
    await counted.deposit(href, "one")
    // From now on the reports of readers change nothing.
    await reportsOfReading(href)
    const readsOf = async (): Promise<number> => {
      const before = counts.reads
      const uri = `${counted.nodes[0]}${new URL(href).pathname}?limit=7`
      expect(descriptions(await counted.send("GET", uri, { basic: owner }))).toEqual(["one"])
      return counts.reads - before
    }
    expect([await readsOf(), await readsOf(), await readsOf()]).toEqual([1, 1, 0])
  })

  test("answers requests with conditions, and is kept by them", async () => {
    const { href } = await counted.open("polled")
    await counted.deposit(href, "one")
    await reportsOfReading(href)
    const uri = `${counted.nodes[0]}${new URL(href).pathname}?limit=8`
    /** Status, reads of the log, and reports of retrievals. */
    const poll = async (headers: Record<string, string>) => {
      const before = { ...counts }
      const answer = await counted.send("GET", uri, { basic: owner, headers })
      await expect.poll(() => counts.answered === counts.sent, { timeout: 60_000 }).toBe(true)
      return [answer.status, counts.reads - before.reads, counts.sent - before.sent]
    }
    const { etag: known } = await counted.send("HEAD", uri, { basic: owner })
    expect(await poll({ "if-none-match": known })).toEqual([304, 1, 0])
    expect(await poll({ "if-none-match": known })).toEqual([304, 1, 0])
    expect(await poll({ "if-none-match": known })).toEqual([304, 0, 0])
    const unchanged = await counted.send("GET", uri, {
      basic: owner,
      headers: { "if-none-match": known }
    })
    // The browser would use them in place of those of the answer that it has.
    for (const name of ["content-type", "content-security-policy"]) {
      expect(unchanged.headers.has(name)).toBe(false)
    }
    expect([unchanged.etag, unchanged.text]).toEqual([known, ""])
    expect(await poll({ "if-match": known })).toEqual([200, 0, 1])
    expect(await poll({ "if-none-match": "\"another\"" })).toEqual([200, 0, 0])
    const refused = await counted.send("GET", uri, {
      basic: owner,
      headers: { "if-match": "\"another\"" }
    })
    expect([refused.status, refused.header("link")]).toEqual([
      412,
      expect.stringContaining("mailbox")
    ])
    await counted.deposit(href, "two")
    expect(await poll({ "if-none-match": known })).toEqual([200, 1, 1])
  })

  test("counts with its fields, which take more than a small body", () => {
    const answer = {
      _tag: "Plain" as const,
      status: 200,
      headers: [["Link", "x".repeat(1_000)], ["ETag", "\"a\""]] as const,
      body: Buffer.alloc(100)
    }
    // Apart, and joined in the answer and in its 304.
    expect(keptBytes({ answer }, "key")).toBeGreaterThanOrEqual(100 + 3 * 1_000)
  })
})
