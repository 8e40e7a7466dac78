/** Searching a mailbox, and listing what is unread. */
import { afterAll, beforeAll, expect, test } from "vitest"
import { childrenOf } from "../../http/formats/xml/index.ts"
import { searchCharsMax } from "../../http/limits.ts"
import { descriptions, type Mailboxes, notification, owner,
  startMailboxes } from "./mailbox-harness.ts"

let service: Mailboxes

beforeAll(async () => {
  service = await startMailboxes()
})

afterAll(() => service.close())

/** Opens a mailbox with these notifications; returns its URI. */
const filled = async (name: string, ...abouts: ReadonlyArray<string>): Promise<string> => {
  const { href } = await service.open(name)
  for (const about of abouts) await service.deposit(href, about)
  return href
}

const list = (path: string, headers: Readonly<Record<string, string>> = {}) =>
  service.send("GET", path, { basic: owner, headers })

/** What all pages of a listing have, from the first on. */
const allOf = async (path: string): Promise<ReadonlyArray<string>> => {
  const answer = await list(path)
  expect(answer.status).toBe(200)
  const next = /<([^>]+)>; rel="next"/.exec(answer.headers.get("link") ?? "")?.[1]
  return [...descriptions(answer).toReversed(), ...next === undefined ? [] : await allOf(next)]
}

test("a search finds the text of any field, in any case, page by page", async () => {
  const href = await filled("found", "Red apples", "pears &amp; plums", "GREEN APPLES", "nuts")
  const extra = "<item><basket>of apples</basket>"
  const body = notification("a gift", "http://far.test/x").replace("<item>", extra)
  await service.send("POST", href, { body, type: "text/xml+rss" })
  expect(await allOf(`${href}?q=apples`)).toEqual(["a gift", "GREEN APPLES", "Red apples"])
  expect(await allOf(`${href}?q=apples&limit=1`)).toEqual(["a gift", "GREEN APPLES", "Red apples"])
  expect(await allOf(`${href}?q=Pears+%26+Plums`)).toEqual(["pears & plums"])
  expect(await allOf(`${href}?q=far.test`)).toEqual(["a gift"])
  // Names of elements, and what stands between two fields, are no text.
  for (const nothing of ["basket", "item", "applesa", "&amp;"]) {
    expect(await allOf(`${href}?q=${encodeURIComponent(nothing)}`)).toEqual([])
  }
  expect(await allOf(`${href}?q=&unread=&limit=2`)).toHaveLength(5)
})

test("a list of what is unread changes with the marks, and with the search", async () => {
  const href = await filled("unread", "red one", "blue two", "red three")
  const listing = await list(href)
  const [one] = childrenOf(listing.xml, "notification")
  await service.send("PUT", `${one?.attributes["href"]}/read`, { basic: owner })
  expect(await allOf(`${href}?unread=true`)).toEqual(["red three", "blue two"])
  expect(await allOf(`${href}?unread=true&q=red`)).toEqual(["red three"])
  const page = await service.send("GET", `${href}?read=&unread=true&q=red`, {
    basic: owner,
    accept: "text/html"
  })
  expect(page.text).toContain("name=\"q\" value=\"red\"")
  expect(page.text).toContain("<b aria-current=\"page\">● unread</b>")
  expect(page.text).not.toContain("blue two")
})

test("a search is shown as it was typed, and nothing unread is said so", async () => {
  const href = await filled("typed", "Red one")
  const page = async (query: string) =>
    (await service.send("GET", `${href}?read=&${query}`, { basic: owner, accept: "text/html" }))
      .text
  const found = await page("q=rEd")
  expect(found).toContain("name=\"q\" value=\"rEd\"")
  expect(found).toContain("Red one")
  const time = (await list(href)).xml.attributes["time"] ?? ""
  const body = `<read><time>${time}</time></read>`
  expect((await service.send("PUT", `${href}/read`, { basic: owner, body })).status).toBe(204)
  expect(await page("unread=true")).toContain("Everything is read.")
  expect(await page("unread=true&q=Red")).toContain("Nothing is found.")
  expect(await page("q=blue")).toContain("Nothing is found.")
})

/** A mailbox with notifications of text, which have tags and a priority. */
const marked = async (name: string) => {
  const { href } = await service.open(name)
  const sent: ReadonlyArray<readonly [text: string, fields: Readonly<Record<string, string>>]> = [
    ["one", { Tags: "disk, shop & co", Priority: "high" }],
    ["two", { Tags: "disk-full" }],
    ["three", { Priority: "3" }],
    ["four", { Tags: "disk", Priority: "max" }]
  ]
  for (const [body, headers] of sent) {
    expect((await service.send("POST", href, { body, type: "text/plain", headers })).status)
      .toBe(202)
  }
  // What is in the text, in another element, or beside the item, is no field of the item.
  const other = "five &lt;tags&gt;disk&lt;/tags&gt;"
  const inner = "<more title=\"> &lt;tags>\"><a/><tags>disk</tags></more><tagset>disk</tagset>"
  const body = notification(other).replace("</item>", `${inner}</item><tags>disk</tags>`)
  await service.send("POST", href, { body, type: "text/xml+rss" })
  return href
}

test("a list by tag and priority, in every format, with the search and the marks", async () => {
  const href = await marked("marked")
  expect(await allOf(`${href}?tag=disk`)).toEqual(["four", "one"])
  expect(await allOf(`${href}?tag=disk&limit=1`)).toEqual(["four", "one"])
  expect(await allOf(`${href}?tag=shop+%26+co`)).toEqual(["one"])
  expect(await allOf(`${href}?tag=Disk`)).toEqual([])
  expect(await allOf(`${href}?priority=4`)).toEqual(["one"])
  // Without a priority it is 3.
  expect(await allOf(`${href}?priority=3`)).toEqual(["five <tags>disk</tags>", "three", "two"])
  expect(await allOf(`${href}?tag=disk&priority=5`)).toEqual(["four"])
  expect(await allOf(`${href}?tag=disk&q=shop`)).toEqual(["one"])
  const listing = await service.send("GET", `${href}?tag=disk`, { basic: owner })
  const [first] = childrenOf(listing.xml, "notification")
  await service.send("PUT", `${first?.attributes["href"]}/read`, { basic: owner })
  expect(await allOf(`${href}?tag=disk&unread=true`)).toHaveLength(1)
  expect(await allOf(`${href}?tag=&priority=`)).toHaveLength(5)
  for (const accept of ["application/json", "application/atom+xml", "text/plain", "text/html"]) {
    const { text } = await service.send("GET", `${href}?read=&tag=shop+%26+co`, {
      basic: owner,
      accept
    })
    expect(text, accept).toContain("one")
    expect(text, accept).not.toContain("three")
  }
})

test("a tag with a line end is found by the link of the page, however it came", async () => {
  const { href } = await service.open("line-ends")
  const deposited = await service.send("POST", href, {
    body: "description=by+a+form&content=c&tags=a%0D%0Ab",
    type: "application/x-www-form-urlencoded"
  })
  expect(deposited.status).toBeLessThan(400)
  const document = notification("by a document").replace("</item>", "<tags>a&#13;b</tags></item>")
  expect((await service.send("POST", href, { body: document })).status).toBe(202)
  const { text } = await service.send("GET", href, { basic: owner, accept: "text/html" })
  const links = [...text.matchAll(/href="[^"]*\?read=&amp;(tag=[^"]*)" title="All with this tag"/g)]
    .map(([, link = ""]) => link)
  expect(links).toEqual(["tag=a%0Db", "tag=a%0Ab"])
  expect(await allOf(`${href}?tag=a%0Db`)).toEqual(["by a document"])
  expect(await allOf(`${href}?tag=a%0Ab`)).toEqual(["by a form"])
})

test("the tags and priorities of the page are links, and the filter can be left", async () => {
  const href = await marked("linked")
  const page = async (query: string) =>
    (await service.send("GET", `${href}?read=${query}`, { basic: owner, accept: "text/html" })).text
  const whole = await page("")
  expect(whole).toMatch(/href="[^"]*\?read=&amp;tag=shop%20%26%20co" title="All with this tag"/)
  expect(whole).toMatch(/href="[^"]*\?read=&amp;priority=5" title="All of this priority"/)
  const filtered = await page("&tag=disk&q=o")
  // A further condition keeps the others, and so does a search.
  expect(filtered).toMatch(/\?read=&amp;tag=disk&amp;priority=5&amp;q=o"/)
  expect(filtered).toContain("<input type=\"hidden\" name=\"tag\" value=\"disk\">")
  expect(filtered).toMatch(/\?read=&amp;q=o"\s+aria-label="Without tag disk"/)
  expect(filtered).not.toContain("Mark all as read")
})

test("a listing begins no retention of what it leaves out", async () => {
  const { href } = await service.open("left-out", "<receipts>retrieved</receipts>")
  const content = []
  for (const about of ["red one", "blue two", "red three"]) {
    const published = await service.send("POST", "/content", { type: "text/plain", body: about })
    content.push(/<([^>]+)>; rel="edit"/.exec(published.header("link"))?.[1] ?? "")
    const body = notification(about, published.header("location"))
    await service.send("POST", href, { body, type: "text/xml+rss" })
  }
  expect(await allOf(`${href}?q=red`)).toEqual(["red three", "red one"])
  const [first = "", left = "", third = ""] = content
  const receipts = async (edit: string) => (await service.send("GET", `${edit}/receipts`)).text
  for (const shown of [first, third]) {
    await expect.poll(() => receipts(shown)).toContain("retrieved")
  }
  expect(await receipts(left)).not.toContain("retrieved")
})

test.each([
  ["since", "since=2026-01-01T00:00:00Z&q=a", {}],
  ["a long poll", "q=a", { Prefer: "wait=1" }],
  ["a stream", "unread=true", { Accept: "text/event-stream" }],
  ["another unread", "unread=maybe", {}],
  ["a tag after a cursor", "since=2026-01-01T00:00:00Z&tag=a", {}],
  ["a priority in a stream", "priority=5", { Accept: "text/event-stream" }],
  ["another priority", "priority=urgent", {}],
  ["a long tag", `tag=${"a".repeat(searchCharsMax + 1)}`, {}],
  ["a long text", `q=${"a".repeat(searchCharsMax + 1)}`, {}]
])("a search with %s is 400", async (_what, query, headers) => {
  const href = await filled(`refused-${query.length}-${Object.keys(headers).length}`, "one")
  expect((await list(`${href}?${query}`, headers)).status).toBe(400)
})
