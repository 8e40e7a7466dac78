/** Mailboxes and cabinets as read by an independent feed reader, the package feedparser. */
import FeedParser from "feedparser"
import { Readable } from "node:stream"
import { pipeline } from "node:stream/promises"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { Answered, Sending } from "./harness.ts"
import { linked } from "./ldn-harness.ts"
import { type Mailboxes, owner, startMailboxes } from "./mailbox-harness.ts"

let service: Mailboxes

beforeAll(async () => {
  service = await startMailboxes()
})
afterAll(() => service.close())

const atom = "application/atom+xml"
const rss = "application/rss+xml"

const get = (href: string, accept: string, options: Sending = {}) =>
  service.send("GET", href, { basic: owner, accept, ...options })

interface Read {
  readonly meta: FeedParser.Meta
  readonly items: ReadonlyArray<FeedParser.Item>
}

/** The feed of an answer; fails if its XML has a fault. */
const read = async (answer: Answered): Promise<Read> => {
  expect(answer.status).toBe(200)
  // A strict parser accepts it as well.
  expect(["feed", "rss"]).toContain(answer.xml.name)
  const parser = new FeedParser({ resume_saxerror: false })
  const items: Array<FeedParser.Item> = []
  const reading = (async () => {
    for await (const item of parser) items.push(item)
  })()
  await Promise.all([pipeline(Readable.from([answer.text]), parser), reading])
  return { meta: parser.meta, items }
}

/** The links of a feed of either kind, by relation. */
const linksOf = ({ meta }: Read): ReadonlyMap<unknown, unknown> => {
  // The parser gives one such element as an object, several as an array, each with its attributes.
  const links = [meta["atom:link"] ?? []].flat() as ReadonlyArray<Record<string, object>>
  return new Map(links.map((link) => {
    const fields = new Map<string, unknown>(Object.entries(link["@"] ?? {}))
    return [fields.get("rel"), fields.get("href")]
  }))
}

const described = (text: string): string =>
  `<notification><item><description>${text}</description><url>http://example.org/m</url>` +
  "<from>http://example.org/outgoing/bob</from></item></notification>"

describe.each([["Atom", atom, "atom"], ["RSS", rss, "rss"]])("a mailbox as %s", (_, type, kind) => {
  it("has a title, ids that stay, dates and links", async () => {
    const { href } = await service.open(`feed-${kind}`, "<title>News &amp; &lt;more&gt;</title>")
    const created = await service.send("POST", href, {
      body: described("one &lt;b>bold&lt;/b> &amp;amp; ünï 😀")
    })
    await service.deposit(href, "two")
    const answer = await get(href, type)
    expect(answer.header("content-type")).toBe(`${type}; charset=utf-8`)
    const feed = await read(answer)
    expect([feed.meta["#type"], feed.meta.title]).toEqual([kind, "News & <more>"])
    // Descriptions are HTML in both, and so is a title of Atom; a title of RSS leaves out tags.
    const asHtml = "one &lt;b&gt;bold&lt;/b&gt; &amp;amp; ünï 😀"
    expect(feed.items.map(({ title }) => title))
      .toEqual(["two", kind === "atom" ? asHtml : "one bold &amp; ünï 😀"])
    const [, one] = feed.items
    expect(one?.description).toBe(asHtml)
    expect([one?.guid, one?.link]).toEqual([created.header("location"), "http://example.org/m"])
    const [newest] = feed.items
    expect(newest?.pubdate?.getTime()).toBeLessThanOrEqual(Date.now())
    expect(newest?.pubdate?.getTime()).toBeGreaterThanOrEqual(one?.pubdate?.getTime() ?? NaN)
    expect(feed.meta.date?.getTime()).toBe(newest?.pubdate?.getTime())
    if (kind === "atom") expect(one?.author).toContain("http://example.org/outgoing/bob")
    const guids = async () => (await read(await get(href, type))).items.map(({ guid }) => guid)
    const before = feed.items.map(({ guid }) => guid)
    expect(new Set(before).size).toBe(2)
    await service.deposit(href, "three")
    expect((await guids()).slice(1)).toEqual(before)
  })

  it("begins with the newest, and links back through all by rel=next", async () => {
    const { href, shared } = await service.open(`pages-${kind}`)
    const all = Array.from({ length: 7 }, (_one, at) => `n${at}`)
    for (const text of all) await service.deposit(href, text)
    const titles: Array<string> = []
    const selves: Array<unknown> = []
    for (let next: unknown = `${shared}?limit=3`; next !== undefined;) {
      const answer = await service.send("GET", String(next), { accept: type })
      const feed = await read(answer)
      titles.push(...feed.items.map(({ title }) => title))
      const links = linksOf(feed)
      expect(links.get("hub")).toBe(undefined)
      selves.push(links.get("self"))
      next = links.get("next")
      expect(linked(answer, "next")).toEqual(next === undefined ? [] : [next])
    }
    expect(titles).toEqual(all.toReversed())
    expect(selves[0]).toBe(`${shared}?limit=3&format=${kind}`)
    expect(new Set(selves).size).toBe(3)
    const [last] = (await read(await get(href, type))).items
    expect(last?.title).toBe("n6")
    expect(linksOf(await read(await get(href, type))).get("hub")).toBe(`${href}/registrations`)
  })

  it("is 304 by its entity tag, and by its date once that is settled", async () => {
    const { href } = await service.open(`conditional-${kind}`)
    await service.deposit(href, "one")
    const fresh = await get(href, type)
    expect((await get(href, type, { headers: { "if-none-match": fresh.etag } })).status).toBe(304)
    // Another notification may still arrive in the same second.
    expect(fresh.headers.has("last-modified")).toBe(false)
    const never = { "if-modified-since": new Date(Date.now() + 60_000).toUTCString() }
    expect((await get(href, type, { headers: never })).status).toBe(200)
    let dated = fresh
    while (!dated.headers.has("last-modified")) {
      await new Promise((resolve) => setTimeout(resolve, 100))
      dated = await get(href, type)
    }
    expect([dated.text, dated.etag]).toEqual([fresh.text, fresh.etag])
    const modified = dated.header("last-modified")
    const headers = { "if-modified-since": modified }
    const same = await get(href, type, { headers })
    expect([same.status, same.text, same.header("last-modified")]).toEqual([304, "", modified])
    await service.deposit(href, "two")
    const changed = await get(href, type, { headers })
    expect([changed.status, changed.text.includes("two")]).toEqual([200, true])
  })

  it("is a feed without entries too, and PUT accepts its entity tag", async () => {
    const { href } = await service.open(`empty-${kind}`, "<title>Nothing</title>")
    const empty = await get(href, type)
    const feed = await read(empty)
    expect([feed.meta.title, feed.items]).toEqual(["Nothing", []])
    for (const text of ["one", "two"]) await service.deposit(href, text)
    const { etag } = await get(href, type)
    const put = (tag: string) =>
      service.send("PUT", href, {
        basic: owner,
        body: "<mailbox><title>Other</title></mailbox>",
        headers: { "if-match": tag }
      })
    expect((await put(empty.etag)).status).toBe(412)
    expect((await put(etag)).status).toBe(200)
  })
})

describe("finding feeds", () => {
  it("is by rel=alternate of a mailbox's pages, and in Link", async () => {
    const { href, shared } = await service.open("discoverable")
    for (const path of [href, shared]) {
      const page = await service.send("GET", path, { accept: "text/html" })
      for (const type of [atom, rss]) {
        const uri = `${path}?format=${type === atom ? "atom" : "rss"}`
        expect(page.text).toContain(`<link rel="alternate" href="${uri}" type="${type}">`)
        expect(page.header("link")).toContain(`<${uri}>; rel="alternate"; type="${type}"`)
        expect((await get(uri, "text/html")).header("content-type")).toContain(type)
      }
    }
  })

  it("is challenged for the password, which then reads", async () => {
    const { href, password } = await service.open("locked")
    const refused = await service.send("GET", href, { accept: atom })
    expect([refused.status, refused.header("www-authenticate")])
      .toEqual([401, expect.stringContaining("Basic")])
    expect((await read(await get(href, atom, { basic: `any:${password}` }))).items).toEqual([])
  })
})

describe("a cabinet", () => {
  it("is a feed of its mailboxes", async () => {
    const opened = [await service.open("left"), await service.open("right")]
    const created = await service.send("POST", "/cabinets", {
      basic: owner,
      body: `<cabinet><title>Both</title>${
        opened.map(({ href }) => `<mailbox href="${href}"/>`).join("")
      }</cabinet>`
    })
    for (const { href } of opened) await service.deposit(href, href.endsWith("left") ? "l" : "r")
    for (const type of [atom, rss]) {
      const feed = await read(await get(created.header("location"), type))
      expect(feed.meta.title).toBe("Both")
      const kind = type === atom ? "atom" : "rss"
      expect(linksOf(feed).get("self")).toBe(`${created.header("location")}?format=${kind}`)
      expect(feed.items.map(({ title }) => title)).toEqual(["l", "r"])
      expect(new Set(feed.items.map(({ guid }) => guid)).size).toBe(2)
    }
  })
})
