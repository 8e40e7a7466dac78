/** JSON-LD notifications: their representations, their bounds, and deposits by A2. */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { linkedDataDepthMax, linkedDataReadMax, linkedDataValuesMax } from "../../http/limits.ts"
import { announce, consumer, contains, ld, sender } from "./ldn-harness.ts"
import { childText, descriptions, itemOf, type Mailboxes, notification, owner,
  startMailboxes } from "./mailbox-harness.ts"

let service: Mailboxes

beforeAll(async () => {
  service = await startMailboxes()
})
afterAll(() => service.close())

const post = sender(() => service)
const get = consumer(() => service)

/** The number of mailboxes whose names are numbered. */
let hrefs = 0

describe("a notification of JSON-LD", () => {
  it("is an ordinary one to readers of XML, JSON and feeds", async () => {
    const { href } = await service.open("ordinary")
    const location = (await post(href, announce)).header("location")
    const listing = await service.send("GET", href, { basic: owner })
    expect(descriptions(listing)).toEqual(["Alice liked it"])
    const one = await service.send("GET", location, { basic: owner })
    expect(childText(itemOf(one.xml), "url")).toBe("https://blog.example/post/1")
    expect(childText(itemOf(one.xml), "from")).toBe("https://alice.example/#me")
    expect(JSON.parse(childText(one.xml, "linked-data"))).toEqual(announce)
    const feed = await get(href, { accept: "application/atom+xml" })
    expect(feed.text).toContain("<title>Alice liked it</title>")
  })

  it("has a URI and a title that are among the first nodes and values", async () => {
    const { href } = await service.open("many-nodes")
    const object = { object: "http://example.org/object", summary: "found" }
    const urlAfter = async (others: number) => {
      const nodes = [...Array.from({ length: others }, (_, n) => ({ n })), object]
      const location = (await post(href, nodes)).header("location")
      const one = await service.send("GET", location, { basic: owner })
      return childText(itemOf(one.xml), "url")
    }
    expect(await urlAfter(linkedDataReadMax - 1)).toBe("http://example.org/object")
    expect(await urlAfter(linkedDataReadMax)).toMatch(/\/content\//)
  })

  it("is served byte for byte, with any content", async () => {
    const { href } = await service.open("bytes")
    const documents = [
      " \r\n{\"@type\":\t\"X\", \"a\": \"]]> & <b> \\ud800 \ufffe ünï 😀\"}\n",
      `{"a":"${"&<>".repeat(2000)}"}`,
      "[{\"@id\":\"_:b\",\"http://example.org/p\":[{\"@value\":1.50}]}]",
      "{\"__proto__\":{\"object\":\"http://example.org/no\"},\"constructor\":1}"
    ]
    for (const body of documents) {
      const created = await post(href, body)
      expect([body, created.status]).toEqual([body, 201])
      const back = await get(created.header("location"))
      expect([back.status, back.text]).toEqual([200, body])
    }
  })

  it("without anything it points to is published, and pointed to", async () => {
    const { href } = await service.open("pointless")
    const body = JSON.stringify({ "@context": { as: "x" }, "@type": "as:Note", content: "hello" })
    const type = `${ld}; profile="http://example.org/p"`
    const location = (await post(href, body, { type })).header("location")
    const item = itemOf((await service.send("GET", location, { basic: owner })).xml)
    expect(childText(item, "description")).toBe("Note")
    const content = await service.send("GET", childText(item, "url"))
    expect([content.status, content.header("content-type"), content.text]).toEqual([
      200,
      type,
      body
    ])
    expect((await get(location)).text).toBe(body)
  })

  const profile = "profile=\"https://www.w3.org/ns/activitystreams http://a.example/;x\""

  it.each([
    [ld, ld],
    [`${ld}; ${profile}`, `${ld}; ${profile}`],
    [`Application/LD+JSON;charset="utf-8" ; Profile=x;q=1`, `${ld}; profile=x`],
    [`${ld}; charset=utf-8; profile="a\\"b"`, `${ld}; profile="a\\"b"`],
    [`${ld}; profile="not ended`, ld],
    [`${ld}; profile="${"x".repeat(8000)}"`, ld]
  ])("of the type %s is served as %s", async (type, served) => {
    const { href, shared } = await service.open(`type-${hrefs += 1}`)
    // Members, their order, contexts and numbers stay as they are.
    const body = JSON.stringify({
      ...announce,
      "@context": [{ "@vocab": "http://a.example/" }, null],
      "@id": "http://a.example/1",
      numbers: [1.5, -0, "1"],
      "": [[], {}]
    }).replace("1.5", "1.50e0")
    const created = await post(href, body, { type })
    expect(created.status).toBe(201)
    const location = created.header("location")
    for (const uri of [location, `${location}?format=jsonld`]) {
      const back = await get(uri, uri === location ? {} : { accept: "text/html" })
      expect([back.status, back.header("content-type"), back.text]).toEqual([200, served, body])
    }
    const [listed = ""] = contains(await service.send("GET", `${shared}?format=jsonld`))
    const among = await service.send("HEAD", listed, {
      accept: `${ld}; profile="http://b.example/"`
    })
    expect([among.status, among.header("content-type")]).toEqual([200, served])
  })

  it("is deposited once, by its bytes and by Idempotency-Key", async () => {
    const { href } = await service.open("once")
    const location = (await post(href, announce)).header("location")
    expect((await post(href, announce)).header("location")).toBe(location)
    const headers = { "idempotency-key": "the-key-of-an-announcement" }
    const other = { ...announce, object: "http://example.org/other" }
    const [first, repeated] = [
      await post(href, other, { headers }),
      await post(href, other, { headers })
    ]
    expect([repeated.status, repeated.header("location")]).toEqual([201, first.header("location")])
    expect((await post(href, announce, { headers })).status).toBe(422)
    expect(contains(await get(href))).toHaveLength(2)
  })

  it("begins no retention by being listed, but by being read", async () => {
    const { href } = await service.open("kept", "<retention>PT0S</retention>")
    const location = (await post(href, announce)).header("location")
    expect(contains(await get(href))).toEqual([location])
    expect(contains(await get(href))).toEqual([location])
    expect((await get(location)).status).toBe(200)
    while ((await service.send("HEAD", location, { basic: owner })).status !== 410) {
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    expect(contains(await get(href))).toEqual([])
  })

  const nested = (depth: number): string => `${"{\"a\":".repeat(depth)}1${"}".repeat(depth)}`

  it.each([
    ["no JSON", "{", 400],
    ["no UTF-8", Uint8Array.of(0x7b, 0xff, 0x7d), 400],
    ["nothing", "", 400],
    ["a string", "\"x\"", 422],
    ["null", "null", 422],
    ["an empty array", "[]", 422],
    ["an array with a string", "[{\"a\":1},\"x\"]", 422],
    ["a node that says nothing", "{\"@context\":\"http://example.org/c\",\"@id\":\"x\"}", 422],
    ["a value object", "{\"@value\":1}", 422],
    ["a graph of no nodes", "{\"@graph\":[1]}", 422],
    ["@id that is no string", "{\"@id\":1,\"a\":1}", 422],
    ["@type that is no string", "{\"@type\":[1],\"a\":1}", 422],
    ["@context that is a number", "{\"@context\":1,\"a\":1}", 422],
    ["as deep as allowed", nested(linkedDataDepthMax), 201],
    ["too deep", nested(linkedDataDepthMax + 1), 422],
    ["far too deep", "[".repeat(100_000), 400],
    ["deep beyond any stack", "[".repeat(100_000) + "]".repeat(100_000), 422],
    ["too many values", JSON.stringify({ a: Array(linkedDataValuesMax).fill(1) }), 422],
    ["too large", JSON.stringify({ a: "x".repeat(256 * 1024) }), 413]
  ])("%s", async (name, body, status) => {
    const href = `${service.base}/mailboxes/bounds`
    const opened = await service.send("HEAD", href, { basic: owner })
    if (opened.status === 404) await service.open("bounds")
    const options = { type: ld, body }
    const answer = await service.send("POST", href, options)
    expect([name, answer.status]).toEqual([name, status])
    const account = await service.send("POST", href, { ...options, basic: owner })
    expect([name, account.status]).toEqual([name, status])
    if (status !== 422) return
    const problem = await service.send("POST", href, { ...options, accept: "application/json" })
    expect(problem.json).toMatchObject({ rule: expect.stringContaining("linked-data") })
  })
})

describe("A2 beside it", () => {
  it("is as strict as before, and answers 202", async () => {
    const { href } = await service.open("strict")
    expect((await service.deposit(href, "fine")).status).toBe(202)
    const refused = [
      ["application/json", JSON.stringify(announce)],
      ["application/xml", "<notification><item><url>http://a.example/</url></item></notification>"],
      ["application/xml", JSON.stringify(announce)]
    ] as const
    for (const [type, body] of refused) {
      const { status } = await service.send("POST", href, { type, body })
      expect([400, 422]).toContain(status)
    }
    expect((await service.send("POST", href, { type: ld, body: notification("x") })).status)
      .toBe(400)
  })

  it("is read as an Announce where somebody's XML has a broken linked-data", async () => {
    const { href } = await service.open("forged")
    const body = notification("forged").replace(
      "</notification>",
      `<linked-data type="${ld}">{"a":</linked-data></notification>`
    )
    const created = await service.send("POST", href, { body })
    expect((await get(created.header("location"))).json).toMatchObject({ summary: "forged" })
    const typed = body.replace("{\"a\":", "{\"a\":1}").replace(`type="${ld}"`, "type=\"text/html\"")
    const forged = await service.send("POST", href, { body: typed })
    expect((await get(forged.header("location"))).header("content-type")).toBe(ld)
  })
})
