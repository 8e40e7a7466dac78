/** Reading a cabinet (protocol §1.5): rights, order, pages, query, representations. */
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { childrenOf } from "../../http/formats/xml/index.ts"
import { cabinetOf, type Cabinets, descriptionsIn, nextOf, nextReceiptTime, owner, rightsIn,
  startCabinets } from "./cabinets-harness.ts"
import { timeOf } from "./mailbox-harness.ts"

let service: Cabinets

const send: Cabinets["send"] = (...request) => service.send(...request)
const here = (name: string): string => `${service.base}/mailboxes/${name}`

beforeAll(async () => {
  service = await startCabinets()
})
afterAll(() => service.close())

/** All pages from this address. */
const walk = async (from: string): Promise<{ all: Array<string>; time: string; pages: number }> => {
  const all: Array<string> = []
  let pages = 0
  let time = ""
  for (let href: string | undefined = from; href !== undefined; pages++) {
    const page: Awaited<ReturnType<typeof send>> = await service.read(href)
    all.push(...descriptionsIn(page))
    time = timeOf(page)
    href = nextOf(page)
  }
  return { all, time, pages }
}

describe("GET /cabinets/<id>", () => {
  test("merges in order of receipt, each entry with its mailbox", async () => {
    for (const name of ["m-a", "m-b", "m-c"]) await service.open(name)
    const sent: Array<string> = []
    for (const [at, name] of ["b", "a", "c", "c", "a", "b", "a", "c", "b"].entries()) {
      await service.deposit(`m-${name}`, `n${at}`)
      sent.push(`m-${name}/n${at}`)
      await nextReceiptTime()
    }
    const href = await service.make([here("m-c"), here("m-a"), here("m-b")])
    const whole = await service.read(href)
    expect(descriptionsIn(whole)).toEqual(sent)
    expect(whole.xml.attributes).toMatchObject({ href, title: "" })
    expect(timeOf(whole)).toMatch(
      /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z~[0-9a-z]+_(?:[0-9a-z]+\.[0-9a-z]+_)+$/
    )
    expect(nextOf(whole)).toBeUndefined()
    const [first] = childrenOf(whole.xml, "notification")
    expect(first?.attributes["mailbox"]).toBe(here("m-b"))
    const one = await send("GET", first?.attributes["href"] ?? "", { basic: owner })
    expect(one.xml.attributes["received"]).toBe(first?.attributes["received"])
    const paged = await walk(`${href}?limit=2`)
    expect([paged.all, paged.pages]).toEqual([sent, 5])
    expect(await walk(`${href}?since=${paged.time}`)).toMatchObject({ all: [], time: paged.time })
    await service.deposit("m-a", "later")
    expect(descriptionsIn(await service.read(`${href}?since=${paged.time}`))).toEqual(["m-a/later"])
    const fifth = childrenOf(whole.xml, "notification")[5]?.attributes["received"] ?? ""
    const since = encodeURIComponent(fifth)
    expect(descriptionsIn(await service.read(`${href}?since=${since}`))).toEqual([
      ...sent.slice(5),
      "m-a/later"
    ])
    const cursor = timeOf(await send("GET", here("m-a"), { basic: owner }))
    expect(descriptionsIn(await service.read(`${href}?since=${cursor}`))).toEqual(["m-a/later"])
    const far = `${href}?since=2199-01-01T00:00:00%2B01:00`
    expect(descriptionsIn(await service.read(far))).toEqual([])
  })

  test("400 for a since or limit that is none", async () => {
    await service.open("bad")
    const href = await service.make([here("bad")])
    const time = "2030-01-01T00:00:00Z"
    const [, own = ""] = /~([0-9a-z]+_)[0-9a-z]+\.0_$/.exec(timeOf(await service.read(href))) ?? []
    expect(own).not.toBe("")
    for (
      const bad of [
        "since=",
        "since=yesterday",
        "since=~",
        `since=${time}~1`,
        `since=${time}~`,
        `since=${time}~1.2_`,
        `since=${time}~${own}1.zzzzzzzz_`,
        `since=${time}~${own}zzzzzzz.1_`,
        `since=${time}~${own}01.1_`,
        `since=${time}~${own}1.00_`,
        `since=${time}~${own}1.01_`,
        `since=${time}~${own}!`,
        `since=${time}~${own}1.2`,
        `since=x~${own}1.2_`,
        `since=${time}~${own}${"1.2_".repeat(1_000)}`,
        "limit=0",
        "limit=1001",
        "limit=x",
        "limit=1e2",
        "after=x"
      ]
    ) {
      const answer = await send("GET", `${href}?${bad}`, { basic: owner })
      expect([bad.slice(0, 60), answer.status]).toEqual([bad.slice(0, 60), 400])
    }
    expect((await send("GET", `${href}?since=${time}~${own}`, { basic: owner })).status).toBe(200)
    expect((await send("GET", `${href}?limit=1000`, { basic: owner })).status).toBe(200)
  })

  test("a mailbox is read by account or by a shared secret, else shown as unreadable", async () => {
    const secrets = new Map<string, string>()
    for (const name of ["r-open", "r-shared", "r-gone"]) {
      secrets.set(name, await service.open(name))
      await service.deposit(name, "x")
    }
    await send("DELETE", "/mailboxes/r-gone", { basic: owner })
    const shared = secrets.get("r-shared") ?? ""
    const hrefs = [
      here("r-open"),
      shared,
      `${here("r-open")}~wrong`,
      here("r-gone"),
      here("r-none")
    ]
    const bobs = await service.make(hrefs, "", service.bob)
    const seen = await service.read(bobs, service.bob)
    expect(rightsIn(seen))
      .toEqual(["r-open false", "r-shared true", "r-gone false", "r-none false"])
    expect(descriptionsIn(seen)).toEqual(["r-shared/x"])
    const own = await service.make(hrefs)
    expect(rightsIn(await service.read(own)))
      .toEqual(["r-open true", "r-shared true", "r-gone false", "r-none false"])
    // When the mailbox is readable again, no notification is missed.
    const body = cabinetOf([secrets.get("r-open") ?? "", shared])
    await send("PUT", bobs, { basic: service.bob, body })
    const repeated = await service.read(`${bobs}?since=${timeOf(seen)}`, service.bob)
    expect(descriptionsIn(repeated)).toEqual(["r-open/x"])
    // New secrets revoke the right of an old one.
    await send("POST", "/mailboxes/r-shared/password", { basic: owner })
    expect(rightsIn(await service.read(bobs, service.bob)))
      .toEqual(["r-open true", "r-shared false"])
    expect(timeOf(await service.read(`${bobs}?since=${timeOf(repeated)}`, service.bob)))
      .toContain(timeOf(repeated).split("~")[1])
  })

  test("the query filters by text in any case, and by time", async () => {
    for (const name of ["q-a", "q-b"]) await service.open(name)
    await service.deposit("q-a", "The GRAIL is here")
    await service.deposit("q-b", "nothing")
    await service.deposit("q-b", "a link", "http://example.org/grail-shaped")
    const extra = "<notification><item><description>d</description><url>http://example.org/</url>" +
      "<note>the &lt;Grail&gt; &amp; more</note></item></notification>"
    await send("POST", "/mailboxes/q-a", { body: extra })
    const split = "<notification><item><description>gra</description><url>il</url></item>" +
      "</notification>"
    await send("POST", "/mailboxes/q-a", { body: split })
    const both = [here("q-a"), here("q-b")]
    const href = await service.make(both, "<query contains=\"grail\"/>")
    const found = await service.read(href)
    expect(descriptionsIn(found).toSorted()).toEqual([
      "q-a/The GRAIL is here",
      "q-a/d",
      "q-b/a link"
    ])
    expect((await walk(`${href}?limit=1`)).all).toEqual(descriptionsIn(found))
    const marked = await service.make(both, "<query contains=\"&lt;grail&gt; &amp;\"/>")
    expect(descriptionsIn(await service.read(marked))).toEqual(["q-a/d"])
    const tags = await service.make(both, "<query contains=\"description\"/>")
    expect(descriptionsIn(await service.read(tags))).toEqual([])
    const future = await service.make(both, "<query since=\"2199-01-01T00:00:00Z\"/>")
    expect(descriptionsIn(await service.read(future))).toEqual([])
    const past = await service.make(both, "<query since=\"2020-01-01T00:00:00Z\"/>")
    expect(descriptionsIn(await service.read(past))).toHaveLength(5)
  })

  test("a shown notification counts as retrieved; an excluded one or HEAD does not", async () => {
    const body = "<mailbox><name>kept</name><retention>PT0S</retention></mailbox>"
    await send("POST", "/mailboxes", { basic: owner, body })
    for (const text of ["one grail", "two", "three grail"]) await service.deposit("kept", text)
    const href = await service.make([here("kept")], "<query contains=\"grail\"/>")
    await send("HEAD", href, { basic: owner })
    expect(descriptionsIn(await service.read(href))).toEqual(["kept/one grail", "kept/three grail"])
    await expect.poll(async () => {
      const list = await send("GET", "/mailboxes", { basic: owner })
      return childrenOf(list.xml, "mailbox")
        .find(({ attributes }) => attributes["href"] === here("kept"))?.attributes["notifications"]
    }, { timeout: 60_000 }).toBe("1")
    const all = await service.make([here("kept")])
    expect(descriptionsIn(await service.read(all))).toEqual(["kept/two"])
  })

  test("every representation, ETag, 304, HEAD, 406", async () => {
    await service.open("kinds")
    await service.deposit("kinds", "a &lt; b", "http://example.org/one?a=1&amp;b=2")
    await service.deposit("kinds", "&lt;script&gt;", "javascript:alert(1)")
    const href = await service.make([here("kinds"), here("nobody")], "<title>K &amp; co</title>")
    const types = [
      "application/xml",
      "text/xml",
      "application/json",
      "text/plain",
      "text/html",
      "application/atom+xml",
      "application/rss+xml"
    ]
    for (const accept of types) {
      const answer = await send("GET", href, { basic: owner, accept })
      expect([accept, answer.status]).toEqual([accept, 200])
      expect(answer.header("content-type")).toContain(accept)
      expect(answer.header("vary")).toContain("Accept")
      expect(answer.header("vary")).toContain("Authorization")
      expect(answer.header("cache-control")).toBe("private, no-cache")
      const headers = { "if-none-match": answer.etag }
      const repeated = await send("GET", href, { basic: owner, accept, headers })
      expect([repeated.status, repeated.text]).toEqual([304, ""])
      const head = await send("HEAD", href, { basic: owner, accept })
      expect([head.status, head.etag, head.text]).toEqual([200, answer.etag, ""])
    }
    const json = await send("GET", href, { basic: owner, accept: "application/json" })
    expect(json.json).toMatchObject({
      href,
      title: "K & co",
      mailbox: [{ href: here("kinds"), readable: "true" }, { readable: "false" }],
      notification: [{ mailbox: here("kinds"), item: { description: "a < b" } }, {}]
    })
    const page = await send("GET", href, { basic: owner, accept: "text/html" })
    expect(page.text).toContain("&lt;script&gt;")
    expect(page.text).not.toContain("href=\"javascript:")
    expect(page.text).toContain("cannot be read")
    const atom = await send("GET", href, { basic: owner, accept: "application/atom+xml" })
    expect([atom.xml.name, childrenOf(atom.xml, "entry").length]).toEqual(["feed", 2])
    const refused = await send("GET", href, { basic: owner, accept: "image/png" })
    expect([refused.status, refused.text.includes("application/atom+xml")]).toEqual([406, true])
  })

  test("a hundred mailboxes, and a page for each few", async () => {
    const names = Array.from({ length: 100 }, (_, at) => `h${at}`)
    for (const name of names.slice(0, 40)) await service.open(name)
    for (let round = 0; round < 3; round++) {
      for (const name of names.slice(0, 40)) await service.deposit(name, `${round}`)
    }
    const href = await service.make(names.map(here))
    const paged = await walk(`${href}?limit=7`)
    expect(new Set(paged.all).size).toBe(120)
    expect([paged.all.length, paged.pages]).toEqual([120, 18])
    expect(paged.time.length).toBeLessThan(1_000)
    expect((await walk(href)).all).toEqual(paged.all)
  })
})
