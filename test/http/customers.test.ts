/** Customers: C2 and single customers (protocol §3). */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { childrenOf } from "../../http/formats/xml/index.ts"
import { type Area, customer, idsIn, nextOf, startArea } from "./customers-harness.ts"

let area: Area
const get: Area["send"] = (...request) => area.send(...request)

beforeAll(async () => {
  area = await startArea()
  const people: ReadonlyArray<readonly [string, string, number]> = [
    ["a1", "Arthur", 40],
    ["b2", "Bedevere", 21],
    ["c3", "Robin &amp; minstrels", 20],
    ["d4", "Galahad", 22],
    ["e5", "Lancelot", 150],
    ["f6", "A baby", 0]
  ]
  for (const [id, name, age] of people) {
    const created = await area.put(id, customer(name, age, "<city>Camelot</city>"))
    expect(created.status).toBe(201)
    expect(created.header("location")).toBe(`${area.base}/customers/${id}`)
  }
})
afterAll(() => area.close())

const names = async (path: string) => {
  const { status, text, xml } = await get("GET", path)
  expect(status, text).toBe(200)
  return childrenOf(xml, "customer").map((one) => childrenOf(one).map(({ name }) => name).join(" "))
}

describe("C2", () => {
  it("treats agemin as inclusive, and orders by id", async () => {
    expect(await area.idsOf("/customers?agemin=21")).toEqual(["a1", "b2", "d4", "e5"])
    expect(await area.idsOf("/customers?agemin=22")).toEqual(["a1", "d4", "e5"])
    expect(await area.idsOf("/customers?agemin=0")).toHaveLength(6)
    expect(await area.idsOf("/customers?agemin=-5")).toHaveLength(6)
    expect(await area.idsOf("/customers?agemin=150")).toEqual(["e5"])
    expect(await area.idsOf("/customers?agemin=151")).toEqual([])
    expect(await area.idsOf("/customers")).toEqual(["a1", "b2", "c3", "d4", "e5", "f6"])
  })

  it.each(["+", "%2B", "%20", ",", "%2C", "+%2B+"])("separates fields by %s", async (sign) => {
    const all = await names(`/customers?agemin=21&return=name${sign}age`)
    expect(all).toEqual(Array(4).fill("name age"))
  })

  it("shows the fields that are asked for, in that order, or all", async () => {
    expect(await names("/customers?agemin=150&return=age")).toEqual(["age"])
    expect(await names("/customers?agemin=150&return=city+id+age")).toEqual(["city id age"])
    expect(await names("/customers?agemin=150")).toEqual(["name age city"])
    const { text } = await get("GET", "/customers?agemin=150&return=name+age")
    expect(text).toContain(
      `<customers><customer href="${area.base}/customers/e5"><name>Lancelot</name>` +
        "<age>150</age></customer></customers>"
    )
  })

  it.each([
    "agemin=old",
    "agemin=21.5",
    "agemin=1e2",
    "agemin=0x15",
    "agemin=9999999999",
    "return=name+shoe",
    "return=constructor",
    "limit=0",
    "agemin=1&agemin=2",
    "limit=1001",
    "after=nonsense",
    "after=W10",
    "query=nonsense",
    "query=http%3A%2F%2Felsewhere.example%2Fqueries%2Fabcdefghijklmnopqrstuv",
    "agemin=%zz"
  ])("is 400 for %s", async (query) => {
    const refused = await get("GET", `/customers?${query}`)
    expect(refused.status).toBe(400)
    expect(refused.header("content-type")).toContain("application/problem+xml")
  })

  it("pages, with all that was asked in the link to the next", async () => {
    const first = await get("GET", "/customers?agemin=21&return=name+age&limit=2")
    expect(idsIn(first)).toEqual(["a1", "b2"])
    const next = nextOf(first) ?? ""
    expect(next).toContain("agemin=21")
    expect(next).toContain("return=name%20age")
    const second = await get("GET", next)
    expect(idsIn(second)).toEqual(["d4", "e5"])
    expect(childrenOf(childrenOf(second.xml)[0] ?? second.xml)).toHaveLength(2)
    expect(await area.idsOf("/customers?limit=1")).toHaveLength(6)
  })

  it("is JSON, text, and a page that works without a script", async () => {
    const path = "/customers?agemin=150&return=name+age"
    const json = await get("GET", path, { accept: "application/json" })
    expect(json.json).toEqual({
      customer: [{ href: `${area.base}/customers/e5`, name: "Lancelot", age: "150" }]
    })
    const none = await get("GET", "/customers?agemin=151", { accept: "application/json" })
    expect(none.json).toEqual({ customer: [] })
    const page = await get("GET", `${path}&limit=1`, { accept: "text/html" })
    expect(page.text).toContain("<td>Lancelot</td><td class=\"num\">150</td>")
    expect(page.text).toContain("rel=\"next\"")
    expect(page.text).toMatch(/<form action="\/customers" method="get">/)
  })

  it("has no side effect that POST would have: reading is by GET", async () => {
    const posted = await get("POST", "/customers?agemin=21", { body: "<query/>" })
    expect(posted.status).toBe(401)
  })
})

describe("one customer", () => {
  it("needs the role for a change", async () => {
    const body = customer("Tim", 60)
    expect((await area.put("tim", body, { basic: "clerk:wrong" })).status).toBe(401)
    expect((await area.put("tim", body, { basic: area.nobody })).status).toBe(403)
    expect((await get("DELETE", "/customers/a1", { basic: area.nobody })).status).toBe(403)
    expect((await get("DELETE", "/customers/a1")).status).toBe(401)
    expect((await get("GET", "/customers/tim")).status).toBe(404)
  })

  it("is put, read, put again, deleted, gone, and may come back", async () => {
    expect((await area.put("tim", customer("Tim", 60, "<email>t@x</email>"))).status).toBe(201)
    expect((await get("GET", "/customers/tim")).child("email")).toBe("t@x")
    expect((await area.put("tim", customer("Tim", 61))).status).toBe(200)
    expect((await get("GET", "/customers/tim")).child("email")).toBeUndefined()
    expect(await area.idsOf("/customers?agemin=61")).toEqual(["e5", "tim"])
    expect((await area.put("tim", customer("Tim", 10))).status).toBe(200)
    expect(await area.idsOf("/customers?agemin=61")).toEqual(["e5"])
    expect((await get("DELETE", "/customers/tim", { basic: area.clerk })).status).toBe(204)
    expect((await get("GET", "/customers/tim")).status).toBe(410)
    expect((await get("DELETE", "/customers/tim", { basic: area.clerk })).status).toBe(410)
    expect((await get("DELETE", "/customers/no", { basic: area.clerk })).status).toBe(404)
    expect(await area.idsOf("/customers?agemin=0")).not.toContain("tim")
    expect((await area.put("tim", customer("Tim", 5))).status).toBe(201)
    expect((await get("GET", "/customers/tim")).status).toBe(200)
    expect((await get("DELETE", "/customers/tim", { basic: area.clerk })).status).toBe(204)
  })

  it("accepts JSON and its own representation", async () => {
    const created = await area.put("json", "{\"name\":\"J\",\"age\":33}", {
      type: "application/json"
    })
    expect(created.status).toBe(201)
    const { text } = await get("GET", "/customers/json")
    expect((await area.put("json", text)).status).toBe(200)
    const json = await get("GET", "/customers/json", { accept: "application/json" })
    expect((await area.put("json", json.text, { type: "application/json" })).status).toBe(200)
    expect((await get("DELETE", "/customers/json", { basic: area.clerk })).status).toBe(204)
  })

  it.each([
    [customer("N", ""), 422],
    [customer("N", "old"), 422],
    [customer("N", -1), 422],
    [customer("N", 151), 422],
    [customer("N", "2.5"), 422],
    [customer("", 20), 422],
    ["<customer><age>20</age></customer>", 422],
    [customer("N", 20, "<shoe>44</shoe>"), 422],
    [customer("N", 20, "<name>M</name>"), 422],
    [customer("N".repeat(201), 20), 422],
    ["<customer id=\"other\"><name>N</name><age>20</age></customer>", 422],
    ["<person/>", 422],
    ["<customer>", 400]
  ])("refuses %s with %i", async (body, status) => {
    expect((await area.put("bad", body)).status).toBe(status)
    expect((await get("GET", "/customers/bad")).status).toBe(404)
  })

  it("honors conditions: of many concurrent requests one succeeds", async () => {
    const none = { headers: { "If-None-Match": "*" } }
    const created = await Promise.all(
      [1, 2, 3, 4].map((age) => area.put("cond", customer("C", age), none))
    )
    expect(created.map(({ status }) => status).sort()).toEqual([201, 412, 412, 412])
    const { etag } = await get("GET", "/customers/cond")
    const match = { headers: { "If-Match": etag } }
    const all = await Promise.all(
      [11, 12, 13, 14].map((age) => area.put("cond", customer("C", age), match))
    )
    expect(all.map(({ status }) => status).sort()).toEqual([200, 412, 412, 412])
    const age = Number((await get("GET", "/customers/cond")).child("age"))
    expect(await area.idsOf(`/customers?agemin=${age}&return=id`)).toContain("cond")
    const stale = await get("DELETE", "/customers/cond", { basic: area.clerk, ...match })
    expect(stale.status).toBe(412)
    expect((await get("DELETE", "/customers/cond", { basic: area.clerk })).status).toBe(204)
  })

  it("gets an id from the service by POST, once for each key", async () => {
    const headers = { "Idempotency-Key": "\"one customer\"" }
    const body = customer("New", 30)
    const created = await get("POST", "/customers", { basic: area.clerk, body, headers })
    expect(created.status).toBe(201)
    const repeated = await get("POST", "/customers", { basic: area.clerk, body, headers })
    expect([repeated.status, repeated.header("location")]).toEqual([
      201,
      created.header("location")
    ])
    expect((await get("GET", created.header("location"))).child("name")).toBe("New")
    const type = "application/x-www-form-urlencoded"
    const form = await get("POST", "/customers", { basic: area.clerk, body: "name=F&age=7", type })
    expect(form.status).toBe(303)
    const place = form.header("location")
    const changed = { basic: area.clerk, body: "name=G&age=8", type }
    expect((await get("POST", place, changed)).status).toBe(303)
    expect((await get("GET", place)).child("name")).toBe("G")
    for (const one of [place, created.header("location")]) {
      const removal = { basic: area.clerk, body: "method=delete", type }
      expect((await get("POST", one, removal)).status).toBe(303)
      expect((await get("GET", one)).status).toBe(410)
    }
  })
})
