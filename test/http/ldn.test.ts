/**
 * A mailbox as an inbox of W3C Linked Data Notifications: a test for each MUST of a receiver, and
 * for each SHOULD.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { childrenOf } from "../../http/formats/xml/index.ts"
import type { Answered } from "./harness.ts"
import { announce, consumer, contains, ld, linked, sender } from "./ldn-harness.ts"
import { type Mailboxes, owner, startMailboxes } from "./mailbox-harness.ts"

const inboxRel = "http://www.w3.org/ns/ldp#inbox"

let service: Mailboxes

beforeAll(async () => {
  service = await startMailboxes()
})
afterAll(() => service.close())

const post = sender(() => service)
const get = consumer(() => service)

describe("discovery (LDN §3.1)", () => {
  it("MUST: the inbox is named by Link with rel=ldp#inbox, on GET and HEAD", async () => {
    const { href, shared } = await service.open("found")
    await service.deposit(href, "one")
    const [one = ""] = contains(await get(href))
    for (const method of ["GET", "HEAD"]) {
      for (const path of [href, shared, one]) {
        const answer = await service.send(method, path, { basic: owner })
        expect(linked(answer, inboxRel)).toEqual([href])
      }
      // A sender finds it without the right to read.
      const stranger = await service.send(method, href, { accept: ld })
      expect([stranger.status, linked(stranger, inboxRel)]).toEqual([401, [href]])
    }
    const page = await service.send("GET", href, { accept: "text/html" })
    expect(page.text).toContain(`<link rel="${inboxRel}" href="${href}">`)
  })
})

describe("receiving (LDN §3.3.1)", () => {
  it("MUST: GET and POST are supported on the inbox", async () => {
    const { href } = await service.open("methods")
    expect((await service.send("OPTIONS", href)).header("allow")).toMatch(/GET, HEAD, POST/)
    expect((await post(href, announce)).status).toBe(201)
    expect((await get(href)).status).toBe(200)
  })

  it("MUST: 201, and Location from which the notification can be retrieved", async () => {
    const { href } = await service.open("created")
    const created = await post(href, announce)
    expect([created.status, created.text]).toEqual([201, ""])
    const back = await get(created.header("location"))
    expect([back.status, back.header("content-type"), back.json]).toEqual([200, ld, announce])
  })

  it("MUST: application/ld+json is accepted, with and without a profile", async () => {
    const { href } = await service.open("accepted")
    const types = [
      ld,
      `${ld}; profile="https://www.w3.org/ns/activitystreams"`,
      "Application/LD+JSON;charset=utf-8"
    ]
    for (const [at, type] of types.entries()) {
      const created = await post(href, { ...announce, at }, { type })
      expect([type, created.status]).toEqual([type, 201])
      expect((await get(created.header("location"))).json).toEqual({ ...announce, at })
    }
  })

  it("SHOULD: constraints that are not met are answered with 4xx", async () => {
    const { href } = await service.open("constrained", "<deposit>accounts</deposit>")
    expect((await post(href, announce)).status).toBe(401)
    expect((await post(href, announce, { basic: service.bob })).status).toBe(201)
  })

  it("SHOULD: Accept-Post lists the accepted types, on OPTIONS, GET, HEAD and 415", async () => {
    const { href } = await service.open("advertised")
    const answers = [
      await service.send("OPTIONS", href),
      await get(href),
      await service.send("HEAD", href, { basic: owner }),
      await service.send("GET", href, { accept: "text/html" }),
      await post(href, "a b c", { type: "text/turtle" }),
      await post(href, "a b c", { type: "text/turtle", basic: owner })
    ]
    expect(answers.map(({ status }) => status)).toEqual([204, 200, 200, 200, 415, 415])
    const fields = answers.map((one) => one.header("accept-post"))
    for (const field of fields) expect(field.split(", ")).toContain(ld)
    expect(new Set(fields).size).toBe(1)
  })
})

describe("making the contents available (LDN §3.3.2)", () => {
  it("MUST: GET of the inbox is 200 with the URIs, each by ldp:contains, as JSON-LD", async () => {
    const { href, shared } = await service.open("contents")
    expect((await get(href)).json).toEqual({
      "@context": "http://www.w3.org/ns/ldp",
      "@id": href,
      contains: []
    })
    const first = (await post(href, announce)).header("location")
    const second = (await service.deposit(href, "in XML")).header("location")
    const inbox = await get(href)
    expect(inbox.json).toMatchObject({ "@id": href })
    expect([...contains(inbox)].sort()).toEqual([first, second].sort())
    const among = await service.send("GET", shared, { accept: ld })
    expect(among.json).toMatchObject({ "@id": shared })
    for (const uri of contains(among)) {
      expect((await service.send("GET", uri, { accept: ld })).status).toBe(200)
    }
  })

  it("MUST: JSON-LD is available for every notification, posted in any type", async () => {
    const { href } = await service.open("available")
    await post(href, announce)
    await service.deposit(href, "a &lt; b")
    await service.send("POST", href, {
      body: "<notification><item><description>x</description><url>http://example.org/c</url>" +
        "<from>http://example.org/out</from><content type=\"text/plain\">words</content></item>" +
        "</notification>"
    })
    const uris = contains(await get(href))
    const documents = await Promise.all(uris.map(async (uri) => {
      const answer = await get(uri)
      expect([answer.status, answer.header("content-type")]).toEqual([200, ld])
      return answer.json
    }))
    expect(documents).toEqual([
      {
        "@context": "https://www.w3.org/ns/activitystreams",
        id: uris[0],
        type: "Announce",
        summary: "x",
        actor: "http://example.org/out",
        object: {
          id: "http://example.org/c",
          type: "Object",
          mediaType: "text/plain",
          content: "words"
        },
        target: href,
        published: expect.stringMatching(/^\d{4}-.*Z$/)
      },
      expect.objectContaining({ summary: "a &lt; b", object: "http://example.org/m" }),
      announce
    ])
  })

  it("only to readers; ETag, 304, HEAD, a requested profile", async () => {
    const { href } = await service.open("guarded")
    const location = (await post(href, announce)).header("location")
    for (const path of [href, location]) {
      expect((await service.send("GET", path, { accept: ld })).status).toBe(401)
      expect((await get(path, { basic: service.bob })).status).toBe(403)
      const whole = await get(path)
      const headers = { "if-none-match": whole.etag }
      expect((await get(path, { headers })).status).toBe(304)
      const head = await service.send("HEAD", path, { basic: owner, accept: ld })
      expect([head.status, head.etag, head.text]).toEqual([200, whole.etag, ""])
      const profiled = await get(path, {
        accept: `${ld}; profile="https://www.w3.org/ns/activitystreams"`
      })
      expect([profiled.status, profiled.header("content-type")]).toEqual([200, ld])
      expect((await get(path, { accept: "*/*" })).header("content-type")).toContain("xml")
    }
  })

  it("pages from the newest back, each notification once, past those removed", async () => {
    const { href } = await service.open("paged")
    const uris: Array<string> = []
    for (let at = 0; at < 23; at++) {
      uris.push((await post(href, { ...announce, at })).header("location"))
    }
    for (const uri of uris.splice(4, 12)) await service.send("DELETE", uri, { basic: owner })
    const pages: Array<ReadonlyArray<string>> = []
    for (let next: string | undefined = `${href}?limit=3`; next !== undefined;) {
      const page: Answered = await get(next)
      pages.push(contains(page))
      ;[next] = linked(page, "next")
    }
    expect(pages.flat()).toEqual(uris.toReversed())
    expect(Math.max(...pages.map(({ length }) => length))).toBe(3)
    const [older = ""] = linked(await get(`${href}?limit=3`), "next")
    const xml = await get(older, { accept: "application/xml" })
    expect(childrenOf(xml.xml, "notification").map(({ attributes }) => attributes["href"]))
      .toEqual(pages[1]?.toReversed())
    expect((await get(`${href}?before=0`)).status).toBe(400)
  })
})
