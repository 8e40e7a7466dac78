/** Quotes: C1, C3 and C4 (protocol §3). */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { childOf, childrenOf } from "../../http/formats/xml/index.ts"
import { resourceTable } from "../../http/resource-table.ts"
import { adminToken, type Harness, startService } from "./harness.ts"

const admin = `admin:${adminToken}`
let service: Harness
let quoter = ""
let other = ""

const send: Harness["send"] = (...request) => service.send(...request)

const account = async (name: string, role?: string): Promise<string> => {
  const body = `<account><name>${name}</name>${
    role === undefined ? "" : `<role>${role}</role>`
  }</account>`
  const created = await send("POST", "/accounts", { basic: admin, body })
  expect(created.status).toBe(201)
  const token = /<token[^>]*>([^<]+)<\/token>/.exec(created.text)?.[1] ?? created.child("token") ??
    ""
  return `${name}:${token}`
}

const quote = (price: string, currency = "USD") =>
  `<quote><price currency="${currency}">${price}</price></quote>`
const put = (symbol: string, body: string, options: Parameters<Harness["send"]>[2] = {}) =>
  send("PUT", `/quotes/${encodeURIComponent(symbol)}`, { basic: quoter, body, ...options })

beforeAll(async () => {
  service = await startService(resourceTable)
  quoter = await account("quoter", "quotes")
  other = await account("other", "customers")
})
afterAll(() => service.close())

describe("C3: PUT of a quote", () => {
  it("needs the role", async () => {
    const anonymous = await send("PUT", "/quotes/AUTH", { body: quote("1") })
    expect([anonymous.status, anonymous.header("www-authenticate")]).toEqual([
      401,
      expect.stringContaining("Basic")
    ])
    const wrong = { basic: "quoter:wrong", body: quote("1") }
    expect((await send("PUT", "/quotes/AUTH", wrong)).status).toBe(401)
    const forbidden = await send("PUT", "/quotes/AUTH", { basic: other, body: quote("1") })
    expect(forbidden.status).toBe(403)
    expect((await send("GET", "/quotes/AUTH")).status).toBe(404)
    expect((await send("PUT", "/quotes/AUTH", { basic: admin, body: quote("1") })).status).toBe(201)
  })

  it("creates it, then sets it, and preserves decimals as sent", async () => {
    for (
      const [at, price] of ["0012.500", "0.1", "-3", "123456789012345678901234567890.10"].entries()
    ) {
      const set = await put("EXACT", quote(price))
      expect(set.status).toBe(at === 0 ? 201 : 200)
      if (at === 0) expect(set.header("location")).toBe(`${service.base}/quotes/EXACT`)
      const answer = await send("GET", "/quotes?quotename=EXACT")
      expect(answer.status).toBe(200)
      expect(answer.child("price")).toBe(price)
    }
    const { xml } = await send("GET", "/quotes/EXACT")
    expect(xml.attributes).toEqual({ href: `${service.base}/quotes/EXACT`, symbol: "EXACT" })
    expect(childOf(xml, "price")?.attributes["currency"]).toBe("USD")
    expect(childOf(xml, "updated")?.children.join("")).toMatch(/^\d{4}-\d\d-\d\dT.*Z$/)
  })

  it.each(["12.340", "-0.10", "5.00", "12345678901234567890.123456789012345678"])(
    "keeps %s of JSON as it is sent, as a number too",
    async (price) => {
      const type = { type: "application/json" }
      for (const body of [`{"price":${price}}`, `{"quote":{"price":{"text":${price}}}}`]) {
        await put("NUMBER", body, type)
        expect((await send("GET", "/quotes/NUMBER")).child("price")).toBe(price)
      }
    }
  )

  it("accepts JSON, other symbols, and no currency", async () => {
    const json = await put(
      "^GSPC",
      JSON.stringify({ price: { currency: "EUR", text: "5.0" } }),
      {
        type: "application/json"
      }
    )
    expect(json.status).toBe(201)
    const answer = await send("GET", "/quotes?quotename=%5EGSPC", { accept: "application/json" })
    expect(answer.json).toMatchObject({
      symbol: "^GSPC",
      price: { currency: "EUR", text: "5.0" }
    })
    expect((await put("BRK.B", "<quote><price>7</price></quote>")).status).toBe(201)
  })

  it.each([
    ["<quote/>", 422],
    [quote(""), 422],
    [quote("1,5"), 422],
    [quote("1e5"), 422],
    [quote("NaN"), 422],
    [quote("1", "usd"), 422],
    [quote("1").replace("<price", "<bid>1</bid><price"), 422],
    ["<quote symbol=\"ELSE\"><price>1</price></quote>", 422],
    ["<quote><price>1</price><price>2</price></quote>", 422],
    [quote("1".repeat(65)), 422],
    ["<other/>", 422],
    ["<quote>", 400]
  ])("refuses %s with %i", async (body, status) => {
    const refused = await put("BAD", body)
    expect(refused.status).toBe(status)
    expect(refused.header("content-type")).toContain("application/problem+xml")
    expect((await send("GET", "/quotes/BAD")).status).toBe(404)
  })

  it("refuses other types and other symbols", async () => {
    expect((await put("BAD", "1", { type: "text/plain" })).status).toBe(415)
    expect((await put("a b", quote("1"))).status).toBe(404)
    expect((await put("x".repeat(33), quote("1"))).status).toBe(404)
  })

  it("honors conditions, checked and written in one", async () => {
    const created = await put("COND", quote("1"), { headers: { "If-None-Match": "*" } })
    expect(created.status).toBe(201)
    expect((await put("COND", quote("2"), { headers: { "If-None-Match": "*" } })).status).toBe(412)
    const { etag } = await send("GET", "/quotes/COND")
    const headers = { "If-Match": etag }
    const all = await Promise.all(
      ["3", "4", "5", "6"].map((price) => put("COND", quote(price), { headers }))
    )
    expect(all.map(({ status }) => status).sort()).toEqual([200, 412, 412, 412])
    expect((await put("NONE", quote("1"), { headers: { "If-Match": "*" } })).status).toBe(412)
    const stale = await send("DELETE", "/quotes/COND", { basic: quoter, headers })
    expect(stale.status).toBe(412)
  })
})

describe("C1: GET", () => {
  it("is 404 for an unknown symbol", async () => {
    expect((await send("GET", "/quotes?quotename=NOPE")).status).toBe(404)
    expect((await send("GET", "/quotes?quotename=")).status).toBe(404)
    expect((await send("GET", "/quotes?quotename=a/b")).status).toBe(404)
    expect((await send("GET", "/quotes/NOPE~x")).status).toBe(404)
  })

  it("lists all by pages", async () => {
    const symbols = ["P1", "P2", "P3", "P4", "P5"]
    for (const symbol of symbols) expect((await put(symbol, quote("1"))).status).toBe(201)
    const seen: Array<string> = []
    let next: string | undefined = "/quotes?limit=2"
    while (next !== undefined) {
      const page = await send("GET", next)
      expect(page.status).toBe(200)
      const some = childrenOf(page.xml, "quote").map(({ attributes }) => attributes["symbol"] ?? "")
      expect(some.length).toBeLessThanOrEqual(2)
      seen.push(...some)
      next = /<([^>]+)>; rel="next"/.exec(page.headers.get("link") ?? "")?.[1]
    }
    expect(seen.filter((symbol) => /^P\d$/.test(symbol))).toEqual(symbols)
    expect(seen).toEqual([...new Set(seen)].sort())
    expect((await send("GET", "/quotes?limit=0")).status).toBe(400)
    expect((await send("GET", "/quotes?after=x")).status).toBe(400)
  })

  it("has a page with forms that work", async () => {
    const form = "symbol=FORM&price=9.90&currency=USD&name=A+form"
    const type = "application/x-www-form-urlencoded"
    const posted = await send("POST", "/quotes", { basic: quoter, body: form, type })
    expect([posted.status, posted.header("location")]).toEqual([303, `${service.base}/quotes/FORM`])
    const page = await send("GET", "/quotes/FORM", { accept: "text/html" })
    expect(page.text).toContain("9.90")
    const body = "price=10&currency=USD"
    expect((await send("POST", "/quotes/FORM", { basic: quoter, body, type })).status).toBe(303)
    expect((await send("GET", "/quotes/FORM")).child("price")).toBe("10")
    const removal = { basic: quoter, body: "method=delete", type }
    expect((await send("POST", "/quotes/FORM", removal)).status).toBe(303)
    expect((await send("GET", "/quotes/FORM")).status).toBe(410)
  })
})

describe("C4: DELETE of a delisted symbol", () => {
  it("is 204, then 410, until it is listed again", async () => {
    await put("GONE", quote("1"))
    expect((await send("DELETE", "/quotes/GONE")).status).toBe(401)
    expect((await send("DELETE", "/quotes/GONE", { basic: other })).status).toBe(403)
    expect((await send("DELETE", "/quotes/GONE", { basic: quoter })).status).toBe(204)
    expect((await send("DELETE", "/quotes/GONE", { basic: quoter })).status).toBe(410)
    expect((await send("GET", "/quotes/GONE")).status).toBe(410)
    expect((await send("GET", "/quotes?quotename=GONE")).status).toBe(410)
    const { text } = await send("GET", "/quotes?limit=1000")
    expect(text).not.toContain("/quotes/GONE")
    expect((await put("GONE", quote("2"))).status).toBe(201)
    expect((await send("GET", "/quotes/GONE")).child("price")).toBe("2")
    expect((await send("DELETE", "/quotes/NEVER", { basic: quoter })).status).toBe(404)
  })
})
