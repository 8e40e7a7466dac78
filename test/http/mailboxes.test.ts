/** Mailboxes as clients see them: every row of protocol §1.2 by status, header and body. */
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { contentRoutes } from "../../http/content/index.ts"
import { childOf, childrenOf, type Element, textOf } from "../../http/xml.ts"
import { mailboxRoutes } from "../../http/mailboxes/index.ts"
import { accountRoutes } from "../../http/accounts/index.ts"
import { adminToken, type Answered, type Harness, startService } from "./harness.ts"

let service: Harness
let otherToken = ""
const owner = `admin:${adminToken}`

beforeAll(async () => {
  service = await startService((one) => [
    ...mailboxRoutes(one),
    ...contentRoutes(one),
    ...accountRoutes(one)
  ])
  const made = await service.send("POST", "/accounts", {
    basic: owner,
    body: "<account><name>bob</name></account>"
  })
  expect(made.status).toBe(201)
  otherToken = made.child("token") ?? ""
})

afterAll(() => service.close())

const bob = () => `bob:${otherToken}`
const notification = (description: string, url = "http://example.org/m") =>
  `<notification><item><description>${description}</description><url>${url}</url></item></notification>`

interface Opened {
  readonly href: string
  readonly password: string
  readonly shared: string
}

const open = async (name: string, settings = ""): Promise<Opened> => {
  const answer = await service.send("POST", "/mailboxes", {
    basic: owner,
    body: `<mailbox><name>${name}</name>${settings}</mailbox>`
  })
  expect(answer.status).toBe(201)
  return {
    href: answer.header("location"),
    password: answer.child("password") ?? "",
    shared: childOf(answer.xml, "shared")?.attributes["href"] ?? ""
  }
}

const deposit = (href: string, description: string) =>
  service.send("POST", href, { body: notification(description), type: "text/xml+rss" })

const descriptions = (answer: Answered): ReadonlyArray<string> =>
  childrenOf(answer.xml, "notification").map((one) => {
    const item = childOf(one, "item") as Element
    return textOf(childOf(item, "description") as Element)
  })

const timeOf = (answer: Answered): string => answer.xml.attributes["time"] ?? ""

describe("A9: opening a mailbox", () => {
  test("201 with Location, Link and the secrets, shown once", async () => {
    const answer = await service.send("POST", "/mailboxes", {
      basic: owner,
      headers: { slug: "alice" }
    })
    expect(answer.status).toBe(201)
    expect(answer.header("location")).toBe(`${service.base}/mailboxes/alice`)
    expect(answer.header("link")).toContain(`<${service.base}/mailboxes/alice>; rel="mailbox"`)
    expect(answer.header("cache-control")).toBe("no-store")
    expect(answer.xml.name).toBe("mailbox")
    expect(answer.child("title")).toBe("")
    expect(answer.child("password")).toMatch(/^[\w-]{43}$/)
    expect(childOf(answer.xml, "shared")?.attributes["href"]).toMatch(/\/mailboxes\/alice~[\w-]{43}$/)
    expect(answer.child("deposit")).toBe("anyone")
    expect(answer.child("retention")).toBe("P30D")
    expect(answer.child("fetch")).toBe("never")
    expect(answer.child("receipts")).toBe("none")
    const listing = await service.send("GET", "/mailboxes/alice", { basic: owner })
    expect(listing.text).not.toContain(answer.child("password"))
  })

  test("a taken name is 409, without an account 401, a bad name or setting 422", async () => {
    await open("taken")
    const taken = await service.send("POST", "/mailboxes", {
      basic: bob(),
      headers: { slug: "taken" }
    })
    expect(taken.status).toBe(409)
    expect((await service.send("GET", "/mailboxes", { basic: bob() })).text).not.toContain("taken")
    const nobody = await service.send("POST", "/mailboxes")
    expect(nobody.status).toBe(401)
    expect(nobody.header("www-authenticate")).toMatch(/^Basic realm="restante".*Bearer/)
    const wrong: ReadonlyArray<readonly [string, string]> = [
      ["<name>Über Max</name>", "name"],
      [`<name>${"a".repeat(65)}</name>`, "name"],
      ["<name>-a</name>", "name"],
      ["<deposit>nobody</deposit>", "deposit"],
      ["<retention>a month</retention>", "retention"],
      ["<fetch>often</fetch>", "fetch"],
      ["<fetch-limit>-1</fetch-limit>", "fetch-limit"],
      ["<receipts>all</receipts>", "receipts"],
      [`<title>${"a".repeat(201)}</title>`, "title"]
    ]
    for (const [inner, named] of wrong) {
      const body = `<mailbox>${inner}</mailbox>`
      const answer = await service.send("POST", "/mailboxes", { basic: owner, body })
      expect([inner, answer.status]).toEqual([inner, 422])
      expect(answer.child("detail")).toContain(named)
    }
  })

  test("a form, JSON, no name; the same Idempotency-Key gives the same secrets", async () => {
    const form = await service.send("POST", "/mailboxes", {
      basic: owner,
      body: "name=by-form&title=My+letters&deposit=anyone&retention=P1D",
      type: "application/x-www-form-urlencoded",
      accept: "text/html"
    })
    expect(form.status).toBe(201)
    expect(form.header("content-type")).toBe("text/html; charset=utf-8")
    expect(form.text).toContain("not shown again")
    const json = await service.send("POST", "/mailboxes", {
      basic: owner,
      body: JSON.stringify({ name: "by-json", title: "J", "fetch": "eager", "fetch-limit": 1000 }),
      type: "application/json",
      accept: "application/json"
    })
    expect(json.status).toBe(201)
    expect(json.json).toMatchObject({ title: "J", fetch: "eager", "fetch-limit": "1000" })
    const keyed = () =>
      service.send("POST", "/mailboxes", {
        basic: owner,
        headers: { "idempotency-key": "\"open-1\"" }
      })
    const first = await keyed()
    const second = await keyed()
    expect(first.status).toBe(201)
    expect(first.header("location")).toMatch(/\/mailboxes\/[0-9a-f]{32}$/)
    expect([second.status, second.text]).toEqual([201, first.text])
  })
})

describe("GET /mailboxes", () => {
  test("lists the caller's own, by pages", async () => {
    expect((await service.send("GET", "/mailboxes")).status).toBe(401)
    const empty = await service.send("GET", "/mailboxes", {
      basic: bob(),
      accept: "application/json"
    })
    expect(empty.json).toEqual({ mailbox: [] })
    for (const name of ["own-1", "own-2", "own-3"]) await open(name)
    const names: Array<string> = []
    let next: string | undefined = "/mailboxes?limit=2"
    while (next !== undefined) {
      const page: Answered = await service.send("GET", next, { basic: owner })
      expect(page.status).toBe(200)
      const rows = childrenOf(page.xml, "mailbox")
      expect(rows.length).toBeLessThanOrEqual(2)
      names.push(...rows.map((row) => (row.attributes["href"] ?? "").replace(/^.*\//, "")))
      next = /<([^>]*)>; rel="next"/.exec(page.headers.get("link") ?? "")?.[1]
    }
    expect(names).toEqual(expect.arrayContaining(["own-1", "own-2", "own-3"]))
    expect(new Set(names).size).toBe(names.length)
    const html = await service.send("GET", "/mailboxes", { basic: owner, accept: "text/html" })
    expect(html.text).toContain("<form action=\"/mailboxes\" method=\"post\">")
    expect((await service.send("GET", "/mailboxes?limit=0", { basic: owner })).status).toBe(400)
  })
})

describe("A2: depositing", () => {
  test("202 with Location and Link; the same document again has the first one's Location", async () => {
    const { href } = await open("inbox")
    const first = await deposit(href, "hello")
    expect([first.status, first.text]).toEqual([202, ""])
    expect(first.header("location")).toMatch(/\/mailboxes\/inbox\/notifications\/[\w-]+$/)
    expect(first.header("link")).toBe(`<${href}>; rel="mailbox"`)
    const other = await deposit(href, "other")
    const again = await deposit(href, "hello")
    expect(again.status).toBe(202)
    expect(again.header("location")).toBe(first.header("location"))
    expect(other.header("location")).not.toBe(first.header("location"))
    const withCredentials = await service.send("POST", href, {
      basic: owner,
      body: notification("hello")
    })
    expect(withCredentials.header("location")).toBe(first.header("location"))
    const listing = await service.send("GET", href, { basic: owner })
    expect(descriptions(listing)).toEqual(["hello", "other"])
  })

  test("JSON, a form with a page for a browser, and what is none of these", async () => {
    const { href } = await open("types")
    const json = await service.send("POST", href, {
      body: JSON.stringify({ item: { description: "j", url: "http://example.org/" } }),
      type: "application/json"
    })
    expect(json.status).toBe(202)
    const form = await service.send("POST", href, {
      body: "description=by+form&url=&content=line+1%0D%0Aline+2",
      type: "application/x-www-form-urlencoded",
      accept: "text/html,*/*;q=0.8"
    })
    expect(form.status).toBe(202)
    expect(form.header("location")).toContain("/notifications/")
    expect(form.text).toContain("is deposited")
    const listing = await service.send("GET", href, { basic: owner })
    expect(descriptions(listing)).toEqual(["j", "by form"])
    const item = childOf(childrenOf(listing.xml, "notification")[1] as Element, "item") as Element
    const content = await service.send("GET", textOf(childOf(item, "url") as Element))
    expect([content.status, content.text]).toEqual([200, "line 1\nline 2"])
    expect(childOf(item, "content")).toBeUndefined()
    const text = await service.send("POST", href, { body: "hello", type: "text/plain" })
    expect(text.status).toBe(415)
    expect(text.header("accept-post")).toContain("text/xml+rss")
    expect(text.header("link")).toContain("rel=\"mailbox\"")
  })

  test("broken documents and rules: 400, 413, 422 naming the rule; nothing is kept", async () => {
    const { href } = await open("strict")
    const send = (body: string, type = "text/xml+rss") => service.send("POST", href, { body, type })
    expect((await send("<notification>")).status).toBe(400)
    expect((await send("")).status).toBe(400)
    expect((await send("<!DOCTYPE a><notification/>")).status).toBe(400)
    expect((await send("{", "application/json")).status).toBe(400)
    const noUrl = await send("<notification><item><description>a</description></item></notification>")
    expect([noUrl.status, noUrl.child("rule")]).toEqual([422, "url"])
    expect((await send("<other/>")).status).toBe(422)
    expect((await send("url=a", "application/x-www-form-urlencoded")).status).toBe(422)
    expect((await send(notification("a".repeat(300_000)))).status).toBe(413)
    const listing = await service.send("GET", href, { basic: owner })
    expect(descriptions(listing)).toEqual([])
  })

  test("inlined content is published by the service; the repetition has the same", async () => {
    const { href } = await open("inline")
    const body = "<notification><item><description>d</description><url/>" +
      "<password>a-password-of-16-or-more</password>" +
      "<content type=\"text/plain\" encoding=\"base64\">aGVsbG8=</content></item></notification>"
    const first = await service.send("POST", href, { body })
    const second = await service.send("POST", href, { body })
    expect([first.status, second.header("location")]).toEqual([202, first.header("location")])
    const one = await service.send("GET", first.header("location"), { basic: owner })
    const url = textOf(childOf(childOf(one.xml, "item") as Element, "url") as Element)
    expect((await service.send("GET", url)).status).toBe(401)
    const content = await service.send("GET", url, {
      headers: { "message-password": "a-password-of-16-or-more" }
    })
    expect([content.status, content.text]).toEqual([200, "hello"])
    const gone = await service.send("POST", "/mailboxes/no-such", { body })
    expect(gone.status).toBe(404)
  })

  test("unknown elements come back as they came", async () => {
    const { href } = await open("extras")
    const body = "<notification xmlns:x=\"urn:x\"><item><description>d</description><url>u:1</url>" +
      "<x:mood level=\"3\">fine</x:mood></item></notification>"
    const made = await service.send("POST", href, { body })
    const one = await service.send("GET", made.header("location"), { basic: owner })
    expect(one.text).toContain("<x:mood level=\"3\">fine</x:mood>")
  })

  test("for accounts only: 401 for others; an Idempotency-Key; a secret URI must be right", async () => {
    const { href, shared } = await open("members", "<deposit>accounts</deposit>")
    const nobody = await deposit(href, "a")
    expect(nobody.status).toBe(401)
    expect(nobody.header("www-authenticate")).toContain("Basic")
    expect(nobody.header("link")).toContain("rel=\"mailbox\"")
    const keyed = () =>
      service.send("POST", href, {
        basic: bob(),
        body: notification("a"),
        headers: { "idempotency-key": "k-1" }
      })
    const first = await keyed()
    expect(first.status).toBe(202)
    expect((await keyed()).header("location")).toBe(first.header("location"))
    const { href: free, shared: freeShared } = await open("free")
    expect((await deposit(freeShared, "a")).status).toBe(202)
    expect((await deposit(`${free}~wrong`, "b")).status).toBe(404)
    expect((await deposit(shared, "a")).status).toBe(401)
    expect((await deposit("/mailboxes/UPPER", "a")).status).toBe(404)
  })
})

describe("A11: reading", () => {
  test("the owner, the password and the secret URI may; others 401, 403, 404", async () => {
    const { href, password, shared } = await open("rights")
    await deposit(href, "one")
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
    expect((await service.send("GET", href, { basic: bob() })).status).toBe(403)
    expect((await service.send("GET", `${href}~wrong`)).status).toBe(404)
    expect((await service.send("GET", "/mailboxes/no-such", { basic: owner })).status).toBe(404)
  })

  test("since, limit, next: oldest first, full pages over gaps, nothing missed", async () => {
    const { href } = await open("pages")
    const before = timeOf(await service.send("GET", href, { basic: owner }))
    expect(before).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{15}Z$/)
    const locations: Array<string> = []
    for (let i = 1; i <= 7; i++) {
      locations.push((await deposit(href, `n${i}`)).header("location"))
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
    await deposit(href, "n8")
    const fourth = await service.send("GET", `${href}?since=${time}`, { basic: owner })
    expect(descriptions(fourth)).toEqual(["n8"])
    const day = encodeURIComponent(new Date(Date.now() - 86_400_000).toISOString())
    const all = await service.send("GET", `${href}?since=${day}`, { basic: owner })
    expect(descriptions(all)).toHaveLength(6)
    const none = await service.send("GET", `${href}?since=2199-01-01T00:00:00+01:00`, {
      basic: owner
    })
    expect([none.status, descriptions(none)]).toEqual([200, []])
    for (const query of ["since=yesterday", "limit=0", "limit=1001", "limit=x", "since="]) {
      expect((await service.send("GET", `${href}?${query}`, { basic: owner })).status).toBe(400)
    }
  })

  test("every representation, ETag, 304, HEAD, 406", async () => {
    const { href } = await open("kinds", "<title>Kinds &amp; co</title>")
    await deposit(href, "a &lt; b")
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
      const again = await service.send("GET", href, {
        basic: owner,
        accept,
        headers: { "if-none-match": answer.etag }
      })
      expect([again.status, again.text]).toEqual([304, ""])
      const head = await service.send("HEAD", href, { basic: owner, accept })
      expect([head.status, head.etag, head.text]).toEqual([200, answer.etag, ""])
    }
    expect(tags.size).toBe(types.length - 1)
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
    await deposit(href, "another")
    expect((await service.send("GET", href, { basic: owner })).etag).not.toBe(xml.etag)
  })

  test("pages for people: deposit for anybody, read for readers, safe text", async () => {
    const { href, shared } = await open("people")
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
    expect(reader.text).toContain("<script src=\"/mailbox.js\" defer>")
    expect(reader.text).toContain("type=\"application/atom+xml\"")
    expect(reader.text).toContain("aria-live=\"polite\"")
    const script = await service.send("GET", "/mailbox.js")
    expect(script.header("content-type")).toContain("text/javascript")
    expect(() => new Function(script.text)).not.toThrow()
  })

  test("ten wrong passwords, then 429 with Retry-After", async () => {
    const { href, password } = await open("guess")
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

describe("long polls", () => {
  test("wait ends with a deposit, or empty at its end, or at once when there is something", async () => {
    const { href } = await open("poll")
    const wait = (seconds: number, since: string) =>
      service.send("GET", `${href}?since=${since}`, {
        basic: owner,
        headers: { prefer: `respond-async, wait=${seconds}` }
      })
    const start = timeOf(await service.send("GET", href, { basic: owner }))
    const begun = performance.now()
    const empty = await wait(1, start)
    expect(performance.now() - begun).toBeGreaterThan(900)
    expect([empty.status, descriptions(empty)]).toEqual([200, []])
    expect(empty.header("preference-applied")).toBe("wait=1")
    const waiting = wait(20, start)
    await new Promise((resolve) => setTimeout(resolve, 100))
    await deposit(href, "now")
    const full = await waiting
    expect(descriptions(full)).toEqual(["now"])
    expect(performance.now() - begun).toBeLessThan(10_000)
    expect(descriptions(await wait(20, start))).toEqual(["now"])
    const ended = wait(20, timeOf(full))
    await new Promise((resolve) => setTimeout(resolve, 100))
    await service.send("DELETE", href, { basic: owner })
    expect((await ended).status).toBe(410)
  })
})

interface Event {
  readonly event: string
  readonly id: string
  readonly data: string
}

/** Reads a stream's events one by one. */
const stream = async (href: string, headers: Record<string, string> = {}) => {
  const cut = new AbortController()
  const authorization = `Basic ${Buffer.from(owner).toString("base64")}`
  const response = await fetch(href, {
    headers: { accept: "text/event-stream", authorization, ...headers },
    signal: cut.signal
  })
  const reader = (response.body as ReadableStream<Uint8Array>).getReader()
  let text = ""
  const next = async (): Promise<Event | undefined> => {
    for (;;) {
      const end = text.indexOf("\n\n")
      if (end >= 0) {
        const block = text.slice(0, end)
        text = text.slice(end + 2)
        const lines = block.split("\n")
        const of = (name: string) =>
          lines.filter((line) => line.startsWith(`${name}: `))
            .map((line) => line.slice(name.length + 2)).join("\n")
        if (of("event") !== "") return { event: of("event"), id: of("id"), data: of("data") }
        continue
      }
      const { done, value } = await reader.read()
      if (done) return
      text += Buffer.from(value).toString()
    }
  }
  return { response, next, close: () => cut.abort() }
}

describe("live streams", () => {
  test("each notification is an event with its cursor; it resumes; gone ends it", async () => {
    const { href } = await open("live")
    await deposit(href, "one")
    const live = await stream(href)
    expect(live.response.headers.get("content-type")).toContain("text/event-stream")
    expect(live.response.headers.get("link")).toContain("rel=\"mailbox\"")
    const first = await live.next()
    expect(first?.event).toBe("notification")
    expect(first?.data).toMatch(/^<notification href="[^"]+" received="[^"]+"><item>/)
    await deposit(href, "two")
    const second = await live.next()
    expect(second?.data).toContain("two")
    expect((second?.id ?? "") > (first?.id ?? "")).toBe(true)
    live.close()
    await deposit(href, "three")
    const resumed = await stream(href, { "last-event-id": second?.id ?? "" })
    expect((await resumed.next())?.data).toContain("three")
    await service.send("DELETE", href, { basic: owner })
    expect((await resumed.next())?.event).toBe("gone")
    expect(await resumed.next()).toBeUndefined()
    const bad = await service.send("GET", href, { basic: owner, accept: "text/event-stream" })
    expect(bad.status).toBe(410)
  })

  test("1,500 notifications and 200 more meanwhile, each once and in order", async () => {
    const { href } = await open("many")
    for (let from = 0; from < 1500; from += 50) {
      await Promise.all(
        Array.from({ length: 50 }, (_, at) => deposit(href, `m${from + at} ${"x".repeat(2000)}`))
      )
    }
    const live = await stream(href)
    const cursors: Array<string> = []
    const seen = new Set<string>()
    const adding = (async () => {
      for (let i = 0; i < 200; i++) await deposit(href, `late${i}`)
    })()
    while (cursors.length < 1700) {
      const event = await live.next()
      if (event === undefined) break
      cursors.push(event.id)
      seen.add(/href="([^"]+)"/.exec(event.data)?.[1] ?? "")
    }
    await adding
    expect([cursors.length, seen.size]).toEqual([1700, 1700])
    expect([...cursors].sort()).toEqual(cursors)
    live.close()
  })

  test("no rights, no stream; other secrets end it; HEAD; a bad Last-Event-ID", async () => {
    const { href, shared } = await open("closed")
    const accept = "text/event-stream"
    expect((await service.send("GET", href, { accept })).status).toBe(401)
    const headers = { "last-event-id": "x" }
    expect((await service.send("GET", shared, { accept, headers })).status).toBe(400)
    const head = await service.send("HEAD", href, { accept, basic: owner })
    expect([head.status, head.header("content-type")]).toEqual([200, accept])
    const live = await stream(shared, { authorization: "" })
    expect(live.response.status).toBe(200)
    await service.send("POST", `${href}/password`, { basic: owner })
    expect(await live.next()).toBeUndefined()
  })
})

describe("one notification", () => {
  test("200 with href and received; DELETE 204; then 410; unknown 404", async () => {
    const { href } = await open("single")
    const location = (await deposit(href, "it")).header("location")
    expect((await service.send("GET", location)).status).toBe(401)
    const answer = await service.send("GET", location, { basic: owner })
    expect(answer.status).toBe(200)
    expect(answer.xml.name).toBe("notification")
    expect(answer.xml.attributes["href"]).toBe(location)
    expect(answer.xml.attributes["received"]).toMatch(/Z$/)
    expect(answer.header("link")).toContain("rel=\"mailbox\"")
    const rss = await service.send("GET", location, { basic: owner, accept: "text/xml+rss" })
    expect(rss.header("content-type")).toContain("text/xml+rss")
    const page = await service.send("GET", location, { basic: owner, accept: "text/html" })
    expect(page.text).toContain("Read the message")
    const wrong = location.replace(/.$/, (last) => last === "A" ? "Q" : "A")
    expect((await service.send("GET", wrong, { basic: owner })).status).toBe(404)
    const unknown = `${href}/notifications/zz-${"A".repeat(22)}`
    expect((await service.send("GET", unknown, { basic: owner })).status).toBe(404)
    expect((await service.send("GET", `${href}/notifications/x`, { basic: owner })).status).toBe(404)
    const stale = { "if-match": "\"stale\"" }
    const refused = await service.send("DELETE", location, { basic: owner, headers: stale })
    expect(refused.status).toBe(412)
    expect((await service.send("DELETE", location)).status).toBe(401)
    const headers = { "if-match": answer.etag }
    expect((await service.send("DELETE", location, { basic: owner, headers })).status).toBe(204)
    expect((await service.send("GET", location, { basic: owner })).status).toBe(410)
    expect((await service.send("DELETE", location, { basic: owner })).status).toBe(410)
    const put = await service.send("PUT", location, { basic: owner, body: "<a/>" })
    expect([put.status, put.header("allow")]).toEqual([405, "GET, HEAD, DELETE, OPTIONS"])
  })

  test("retention begins with retrieval by GET, not by HEAD", async () => {
    const { href } = await open("brief", "<retention>PT0S</retention>")
    const location = (await deposit(href, "soon gone")).header("location")
    await service.send("HEAD", href, { basic: owner })
    await new Promise((resolve) => setTimeout(resolve, 200))
    expect(descriptions(await service.send("GET", href, { basic: owner }))).toEqual(["soon gone"])
    await expect.poll(
      async () => (await service.send("GET", location, { basic: owner })).status,
      { timeout: 5000 }
    ).toBe(410)
  })
})

describe("the owner", () => {
  test("PUT replaces the settings under If-Match", async () => {
    const { href } = await open("settings", "<title>Old</title>")
    const body = "<mailbox><title>New</title><retention>P7D</retention></mailbox>"
    expect((await service.send("PUT", href, { body })).status).toBe(401)
    expect((await service.send("PUT", href, { body, basic: bob() })).status).toBe(403)
    const bad = await service.send("PUT", href, { body: "<mailbox><fetch>x</fetch></mailbox>", basic: owner })
    expect(bad.status).toBe(422)
    const { etag } = await service.send("GET", href, { basic: owner, accept: "application/json" })
    const headers = { "if-match": etag }
    const answer = await service.send("PUT", href, { body, basic: owner, headers })
    expect([answer.status, answer.child("title"), answer.child("retention")])
      .toEqual([200, "New", "P7D"])
    expect((await service.send("PUT", href, { body, basic: owner, headers })).status).toBe(412)
    const got = await service.send("GET", href, { basic: owner })
    expect([got.xml.attributes["title"], got.child("retention")]).toEqual(["New", "P7D"])
    const back = await service.send("PUT", href, { body: got.text, basic: owner })
    expect([back.status, back.child("title"), back.child("retention")]).toEqual([200, "New", "P7D"])
    const unknown = await service.send("PUT", "/mailboxes/no-such", { body, basic: owner })
    expect(unknown.status).toBe(404)
  })

  test("other secrets end the old ones", async () => {
    const { href, password, shared } = await open("secrets")
    expect((await service.send("POST", `${href}/password`)).status).toBe(401)
    expect((await service.send("POST", `${href}/password`, { basic: bob() })).status).toBe(403)
    const answer = await service.send("POST", `${href}/password`, { basic: owner })
    expect(answer.status).toBe(200)
    expect(answer.header("cache-control")).toBe("no-store")
    const fresh = childOf(answer.xml, "shared")?.attributes["href"] ?? ""
    expect(answer.child("password")).not.toBe(password)
    expect((await service.send("GET", shared)).status).toBe(404)
    expect((await service.send("GET", fresh)).status).toBe(200)
  })

  test("A10: 204, then 410 for all below, off the list, and the name is not given again", async () => {
    const { href, shared } = await open("doomed")
    const location = (await deposit(href, "x")).header("location")
    expect((await service.send("DELETE", href)).status).toBe(401)
    expect((await service.send("DELETE", href, { basic: bob() })).status).toBe(403)
    const stale = await service.send("DELETE", href, {
      basic: owner,
      headers: { "if-match": "\"x\"" }
    })
    expect(stale.status).toBe(412)
    expect((await service.send("DELETE", href, { basic: owner })).status).toBe(204)
    for (const [method, path] of [
      ["GET", href],
      ["GET", shared],
      ["POST", href],
      ["DELETE", href],
      ["PUT", href],
      ["GET", location],
      ["DELETE", location],
      ["POST", `${href}/password`]
    ] as const) {
      const body = method === "POST" ? notification("y") : method === "PUT" ? "<mailbox/>" : undefined
      const answer = await service.send(method, path, {
        basic: owner,
        ...body === undefined ? {} : { body }
      })
      expect([method, path, answer.status]).toEqual([method, path, 410])
    }
    expect((await deposit(href, "z")).status).toBe(410)
    expect((await service.send("GET", href, { accept: "text/html" })).status).toBe(410)
    expect((await service.send("GET", "/mailboxes", { basic: owner })).text).not.toContain("doomed")
    const again = await service.send("POST", "/mailboxes", { basic: owner, headers: { slug: "doomed" } })
    expect(again.status).toBe(409)
  })

  test("OPTIONS and 405 with Allow", async () => {
    const { href } = await open("methods")
    const options = await service.send("OPTIONS", href)
    expect([options.status, options.header("allow")])
      .toEqual([204, "GET, HEAD, POST, PUT, DELETE, OPTIONS"])
    const patch = await service.send("PATCH", href, { basic: owner, body: "<a/>" })
    expect([patch.status, patch.header("allow")])
      .toEqual([405, "GET, HEAD, POST, PUT, DELETE, OPTIONS"])
    expect((await service.send("GET", `${href}/password`, { basic: owner })).status).toBe(405)
  })
})
