/** URIs of single representations, by `?format=` (protocol §7): their order, pages and caches. */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { chooseFormat, formatTypes } from "../../http/formats/representation-uris.ts"
import { childOf, childrenOf } from "../../http/formats/xml/index.ts"
import type { Sending } from "./harness.ts"
import { contains, linked } from "./ldn-harness.ts"
import { type Mailboxes, owner, startMailboxes, timeOf } from "./mailbox-harness.ts"

let service: Mailboxes

/** A mailbox whose last deposit is old when the last test reads it. */
let mixed = { cursor: "", href: "", shared: "" }

beforeAll(async () => {
  service = await startMailboxes()
  const { href, shared } = await service.open("mixed")
  await service.deposit(href, "one")
  const cursor = (await get(href)).xml.attributes["time"] ?? ""
  await service.deposit(href, "two")
  mixed = { cursor, href, shared }
})
afterAll(() => service.close())

const get = (href: string, options: Sending = {}) =>
  service.send("GET", href, { basic: owner, ...options })

const formats = Object.keys(formatTypes)

describe("the canonical URI", () => {
  const offer = { formats: ["xml", "json"] as const, parameters: ["since", "limit", "return"] }
  const choose = (path: string, query: string) =>
    chooseFormat({ path, query }, offer, "http://post.test")

  it.each([
    ["/m", "", "/m", undefined],
    ["/m", "format=json", "/m", "json"],
    ["/m", "limit=3&format=json&since=a", "/m?since=a&limit=3", "json"],
    ["/m", "utm_source=x&limit=3", "/m?limit=3", undefined],
    ["/m", "return=b&return=a", "/m?return=b&return=a", undefined],
    ["/m", "since=T00%3a00:00%2b01", "/m?since=T00%3A00%3A00%2B01", undefined],
    ["/m", "a=%ff", "/m", undefined],
    ["/%61lice~s", "since=+%c3%BC", "/alice~s?since=%20%C3%BC", undefined]
  ])("of %s?%s is %s", (path, query, expected, format) => {
    const choice = choose(path, query)
    expect([choice.uri, choice.format, choice.fault])
      .toEqual([`http://post.test${expected}`, format, undefined])
  })

  it.each(["format=atom", "format=", "format=xml&format=json", "format=XML", "format=xml&a=%ff"])(
    "does not exist for %s",
    (query) => expect(choose("/m", query).fault).toBeDefined()
  )
})

describe("every listing", () => {
  const item = "<item><description>d</description><url>http://example.org/m</url></item>"
  const post = async (path: string, body: string): Promise<string> => {
    const created = await service.send("POST", path, { basic: owner, body })
    return created.header("location")
  }

  /** Makes three entries of a listing; returns its path, with a query that selects all of them. */
  const listings: Readonly<Record<string, () => Promise<string>>> = {
    mailboxes: async () => {
      for (const name of ["l1", "l2", "l3"]) await service.open(name)
      return "/mailboxes"
    },
    outgoing: async () => {
      const { href } = await service.open("target")
      const body = `<notification><to>${href}</to>${item}</notification>`
      for (const _ of [1, 2, 3]) await post("/outgoing/admin", body)
      return "/outgoing/admin"
    },
    cabinets: async () => {
      const { href } = await service.open("in-cabinets")
      for (const _ of [1, 2, 3]) {
        await post("/cabinets", `<cabinet><mailbox href="${href}"/></cabinet>`)
      }
      return "/cabinets"
    },
    cabinet: async () => {
      const { href } = await service.open("in-cabinet")
      for (const text of ["1", "2", "3"]) await service.deposit(href, text)
      return post("/cabinets", `<cabinet><mailbox href="${href}"/></cabinet>`)
    },
    sessions: async () => {
      for (const _ of [1, 2, 3]) {
        await service.send("POST", "/sessions", { body: "<answer continue=\"true\">yes</answer>" })
      }
      return "/sessions"
    },
    queries: async () => {
      const where = "<where field=\"age\" op=\"ge\" value=\"21\"/>"
      for (const _ of [1, 2, 3]) await post("/queries", `<query on="customers">${where}</query>`)
      return "/queries"
    },
    customers: async () => {
      for (const id of ["a1", "a2", "a3"]) {
        const body = `<customer id="${id}"><name>Neo</name><age>37</age></customer>`
        await service.send("PUT", `/customers/${id}`, { basic: owner, body })
      }
      return "/customers?agemin=21&return=name&return=age"
    },
    quotes: async () => {
      const body = "<quote><price currency=\"USD\">1.50</price></quote>"
      for (const symbol of ["A", "B", "C"]) {
        await service.send("PUT", `/quotes/${symbol}`, { basic: owner, body })
      }
      return "/quotes"
    }
  }

  it.each(Object.entries(listings))("of %s keeps the format on its pages", async (name, make) => {
    const path = await make()
    const first = `${path}${path.includes("?") ? "&" : "?"}limit=2`
    const offered = linked(await get(first), "alternate")
      .map((uri) => /format=(\w+)$/.exec(uri)?.[1]).filter((one) => one !== undefined)
    const feeds = name === "cabinet" ? ["atom", "rss"] : []
    expect(offered).toEqual(expect.arrayContaining(["xml", "json", "html", "text", ...feeds]))
    for (const format of offered) {
      let pages = 0
      for (let uri: string | undefined = `${first}&format=${format}`; uri !== undefined;) {
        const answer = await get(uri)
        expect([uri, answer.status]).toEqual([uri, 200])
        expect(linked(answer, "self")[0]).toMatch(new RegExp(`[?&]format=${format}$`))
        const next = linked(answer, "next")[0]
        pages += 1
        uri = pages === 2 ? undefined : next
      }
      expect([format, pages]).toEqual([format, 2])
    }
  })
})

it("keeps the query in the redirect to the caller's own outgoing mailbox", async () => {
  for (const query of ["", "?format=json", "?status=failed&limit=2&format=text"]) {
    const redirect = await get(`/outgoing${query}`)
    expect([redirect.status, new URL(redirect.header("location")).search]).toEqual([303, query])
    expect((await get(redirect.header("location"))).status).toBe(200)
  }
})

it("leaves links out of a Link field that proxies would not take", async () => {
  const { href } = await service.open("in-long-cabinet")
  for (const text of ["1", "2"]) await service.deposit(href, text)
  const cabinet = (await service.send("POST", "/cabinets", {
    basic: owner,
    body: `<cabinet><mailbox href="${href}"/></cabinet>`
  })).header("location")
  const sizes: Array<number> = []
  const [own = ""] = /~[0-9a-z]+_/.exec(timeOf(await get(cabinet))) ?? []
  for (const positions of [0, 5, 15, 40, 80, 180]) {
    // Positions of mailboxes that are not in it.
    const since = `2020-01-01T00:00:00.000Z${own}${"1abcdef.1_".repeat(positions)}`
    for (const accept of ["application/xml", "application/atom+xml"]) {
      const answer = await get(`${cabinet}?since=${since}&limit=1`, { accept })
      expect([positions, answer.status, linked(answer, "next").length]).toEqual([positions, 200, 1])
      const bytes = [...answer.headers].map(([name, value]) => name.length + value.length + 4)
      sizes.push(bytes.reduce((sum, one) => sum + one, 0))
    }
    const page = await get(`${cabinet}?since=${since}&limit=1&format=html`)
    expect(page.text.match(/<link rel="(?:self|alternate)"/g)).toHaveLength(6)
  }
  expect(Math.max(...sizes)).toBeLessThan(4096)
})

describe("a mailbox", () => {
  it("names itself in its feeds, and links to the others from its page", async () => {
    const { href, shared } = await service.open("selves", "<title>Selves</title>")
    await service.deposit(href, "one")
    for (const uri of [href, shared]) {
      const atom = (await get(`${uri}?limit=7&format=atom`)).xml
      const self = (links: ReturnType<typeof childrenOf>) =>
        links.find(({ attributes }) => attributes["rel"] === "self")?.attributes["href"]
      expect(self(childrenOf(atom, "link"))).toBe(`${uri}?limit=7&format=atom`)
      const others = (links: ReturnType<typeof childrenOf>) =>
        links.filter(({ attributes }) => attributes["rel"] === "alternate")
          .map(({ attributes }) => [attributes["href"], attributes["type"]])
      const all = (without: string) =>
        Object.entries(formatTypes).filter(([format]) => format !== without)
          .map(([format, type]) => [`${uri}?limit=7&format=${format}`, type])
      expect(others(childrenOf(atom, "link"))).toEqual(all("atom"))
      const channel = childOf((await get(`${uri}?format=rss&limit=7`)).xml, "channel")
      expect(channel && self(childrenOf(channel, "atom:link"))).toBe(`${uri}?limit=7&format=rss`)
      expect(channel && others(childrenOf(channel, "atom:link"))).toEqual(all("rss"))
      const page = await get(`${uri}?format=html`, { accept: "application/json" })
      expect(page.text).toContain(
        `<link rel="self" href="${uri}?format=html" type="text/html">`
      )
      for (const format of ["atom", "rss", "jsonld"] as const) {
        const link = `<link rel="alternate" href="${uri}?format=${format}" type="`
        expect(page.text).toContain(`${link}${formatTypes[format]}">`)
      }
    }
  })

  it("keeps the format and the order on all of its pages", async () => {
    const { href, shared } = await service.open("all-pages")
    const all: Array<string> = []
    for (const text of ["a", "b", "c", "d", "e"]) {
      all.push((await service.deposit(href, text)).header("location").split("/").at(-1) ?? "")
    }
    for (const format of formats) {
      const found: Array<string> = []
      let pages = 0
      for (let uri: string | undefined = `${shared}?format=${format}&limit=2`; uri !== undefined;) {
        const answer = await get(uri, { accept: "image/png" })
        expect([uri, answer.status]).toEqual([uri, 200])
        expect(linked(answer, "self")[0]).toContain(`format=${format}`)
        found.push(...all.filter((id) => answer.text.includes(`/notifications/${id}`)))
        pages += 1
        const next = linked(answer, "next")[0]
        expect(next ?? `format=${format}`).toContain(`format=${format}`)
        if (format === "atom" && next !== undefined) {
          const links = childrenOf(answer.xml, "link")
          const inside = links.find(({ attributes }) => attributes["rel"] === "next")
          expect(inside?.attributes["href"]).toBe(next)
        }
        uri = next
      }
      expect([format, pages, found.toSorted()]).toEqual([format, 3, all.toSorted()])
    }
  })

  it("has rel=mailbox, Basic and no streams at every format", async () => {
    const { href } = await service.open("rules")
    const refused = await get(`${href}?format=pdf`, { accept: "text/event-stream" })
    expect([refused.status, linked(refused, "mailbox")]).toEqual([400, [href]])
    const listed = await get(`${href}?format=jsonld`, { accept: "text/event-stream" })
    expect(contains(listed)).toEqual([])
    const locked = await service.send("GET", `${href}?format=json`)
    expect([locked.status, locked.header("content-type")])
      .toEqual([401, "application/problem+json"])
    expect(locked.headers.get("vary") ?? "").not.toMatch(/\bAccept\b/)
    const open = await service.send("GET", `${href}?format=html`)
    expect([open.status, open.text.includes("Leave a notification here")]).toEqual([200, true])
    const challenged = await service.send("GET", `${href}?format=html&read=`)
    expect([challenged.status, challenged.header("content-type")])
      .toEqual([401, "text/html; charset=utf-8"])
  })

  it("is changed by the entity tag of any representation", async () => {
    const { href } = await service.open("tags")
    await service.deposit(href, "one")
    for (const format of formats) {
      const { etag } = await get(`${href}?format=${format}`)
      const put = await service.send("PUT", href, {
        basic: owner,
        body: `<mailbox><title>${format}</title></mailbox>`,
        headers: { "if-match": etag }
      })
      expect([format, put.status]).toEqual([format, 200])
    }
  })

  it("answers each URI with its own representation, however often and in any order", async () => {
    const { cursor, href, shared } = mixed
    const uris = [href, shared].flatMap((uri) =>
      ["", `since=${cursor}`, "limit=1", "before=2"].flatMap((query) =>
        [undefined, ...formats].map((format) => {
          const all = [query, format === undefined ? "" : `format=${format}`].filter(Boolean)
          return `${uri}${all.length === 0 ? "" : `?${all.join("&")}`}`
        })
      )
    )
    const accepts = ["application/xml", "application/atom+xml", "text/html"]
    const read = async () => {
      const seen = new Map<string, string>()
      for (const [at, uri] of uris.entries()) {
        const accept = accepts[at % accepts.length] ?? ""
        const { headers, status, text } = await get(uri, { accept })
        const fields = ["etag", "link", "vary", "content-type"].map((name) => headers.get(name))
        seen.set(uri, JSON.stringify([status, ...fields, text]))
      }
      return seen
    }
    // The date of a feed is given once it is settled; until then nothing is kept.
    const settled = async () => (await get(`${href}?format=atom`)).headers.has("last-modified")
    while (!(await settled())) await new Promise((resolve) => setTimeout(resolve, 100))
    const first = await read()
    expect(await read()).toEqual(first)
    expect(new Set(first.values()).size).toBe(uris.length)
  })
})
