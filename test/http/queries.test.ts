/** Queries as resources, and reading customers and quotes by them (protocol §3). */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { childOf, childrenOf } from "../../http/formats/xml/index.ts"
import { anonymousQueryRetentionMs } from "../../http/limits.ts"
import { admin, type Area, customer, startArea } from "./customers-harness.ts"

let area: Area
const send: Area["send"] = (...request) => area.send(...request)

beforeAll(async () => {
  area = await startArea()
  const people: ReadonlyArray<readonly [string, string, number, string]> = [
    ["a", "Arthur", 40, "Camelot"],
    ["b", "Bedevere", 21, "camelot"],
    ["c", "Robin", 20, "Swamp Castle"],
    ["d", "Galahad", 22, "Castle Anthrax"],
    ["e", "Lancelot", 50, ""]
  ]
  for (const [id, name, age, city] of people) {
    const more = city === "" ? "" : `<city>${city}</city>`
    expect((await area.put(id, customer(name, age, more))).status).toBe(201)
  }
  for (const [symbol, price] of [["A", "10.50"], ["B", "9"], ["C", "100.0"]]) {
    const body = `<quote><price currency="USD">${price}</price></quote>`
    expect((await send("PUT", `/quotes/${symbol}`, { basic: admin, body })).status).toBe(201)
  }
})
afterAll(() => area.close())

const make = async (inner: string, on = "customers"): Promise<string> => {
  const created = await send("POST", "/queries", { body: `<query on="${on}">${inner}</query>` })
  expect(created.status, created.text).toBe(201)
  return created.header("location")
}
const at = (href: string, more = "") => `/customers?query=${encodeURIComponent(href)}${more}`
const found = async (inner: string, more = "") => area.idsOf(at(await make(inner), more))
const where = (field: string, op: string, value: string) =>
  `<where field="${field}" op="${op}" value="${value}"/>`

describe("a query without an account", () => {
  it("shows its expiry; one with an owner does not expire", async () => {
    const body = "<query on=\"customers\"><all/></query>"
    const created = await send("POST", "/queries", { body })
    const keptMs = Date.parse(created.xml.attributes["expires"] ?? "") - Date.now()
    expect(keptMs / anonymousQueryRetentionMs).toBeCloseTo(1, 3)
    const read = await send("GET", new URL(created.header("location")).pathname)
    expect(read.xml.attributes["expires"]).toBe(created.xml.attributes["expires"])
    const wrong = { basic: "admin:wrong" }
    expect((await send("POST", "/queries", { ...wrong, body })).status).toBe(401)
    expect((await send("GET", "/queries", wrong)).status).toBe(401)
    const owned = await send("POST", "/queries", { basic: admin, body })
    expect([owned.status, owned.xml.attributes["expires"]]).toEqual([201, undefined])
    // The document of GET can be PUT; that does not change the expiry.
    const edit = /<([^>]*)>; rel="edit"/.exec(created.header("link"))?.[1] ?? ""
    const put = await send("PUT", new URL(edit).pathname, { body: read.text })
    expect([put.status, put.xml.attributes["expires"]]).toEqual([
      200,
      created.xml.attributes["expires"]
    ])
  })
})

describe("a query", () => {
  it.each([
    [where("age", "ge", "22"), ["a", "d", "e"]],
    [where("age", "eq", "21"), ["b"]],
    [where("age", "ne", "21"), ["a", "c", "d", "e"]],
    [where("age", "lt", "21"), ["c"]],
    [where("age", "le", "21") + where("age", "gt", "20"), ["b"]],
    [where("name", "eq", "arthur"), []],
    [where("name", "contains", "LA"), ["d", "e"]],
    [where("name", "starts", "ro"), ["c"]],
    [where("name", "ends", "HAD"), ["d"]],
    [where("city", "eq", ""), ["e"]],
    [where("id", "gt", "c"), ["d", "e"]],
    [`<any>${where("city", "eq", "Camelot")}${where("age", "gt", "40")}</any>`, ["a", "e"]],
    [`<not>${where("city", "contains", "castle")}</not>`, ["a", "b", "e"]],
    [
      `<all>${where("age", "ge", "21")}<any>${where("name", "starts", "b")}<not>${
        where("age", "lt", "50")
      }</not></any></all>`,
      ["b", "e"]
    ],
    ["<all/>", ["a", "b", "c", "d", "e"]],
    ["<any/>", []],
    ["", ["a", "b", "c", "d", "e"]],
    ["<order by=\"age\"/>", ["c", "b", "d", "a", "e"]],
    ["<order by=\"age\" direction=\"desc\"/>", ["e", "a", "d", "b", "c"]],
    ["<order by=\"name\" direction=\"desc\"/>", ["c", "e", "d", "b", "a"]],
    ["<order by=\"city\"/><limit>2</limit>", ["e", "a"]],
    ["<order by=\"age\" direction=\"desc\"/><limit>3</limit>", ["e", "a", "d"]]
  ])("%s finds %j, on pages of any size", async (inner, ids) => {
    const href = await make(inner)
    for (const more of ["", "&limit=1", "&limit=2"]) {
      expect(await area.idsOf(at(href, more))).toEqual(ids)
    }
  })

  it("is combined with the other parameters", async () => {
    const inner = `${where("age", "le", "40")}<return>name</return>`
    expect(await found(inner, "&agemin=21")).toEqual(["a", "b", "d"])
    const href = await make(inner)
    const byQuery = await send("GET", at(href))
    expect(childrenOf(childrenOf(byQuery.xml)[0] ?? byQuery.xml).map(({ name }) => name)).toEqual([
      "name"
    ])
    const byAddress = await send("GET", at(href, "&return=age+city"))
    expect(childrenOf(childrenOf(byAddress.xml)[0] ?? byAddress.xml).map(({ name }) => name))
      .toEqual(["age", "city"])
    // The path of the URI, and the edit URI, name the same query.
    expect(await area.idsOf(`/customers?query=${new URL(href).pathname}~x&agemin=22`)).toEqual([
      "a",
      "d"
    ])
  })

  it("compares prices of quotes as numbers", async () => {
    const href = await make("<order by=\"price\"/>", "quotes")
    const path = (query: string) => `/quotes?query=${encodeURIComponent(query)}`
    expect(await area.idsOf(path(href))).toEqual(["B", "A", "C"])
    expect(await area.idsOf(`${path(href)}&limit=1`)).toEqual(["B", "A", "C"])
    expect(await area.idsOf(path(await make(where("price", "gt", "10.5"), "quotes")))).toEqual([
      "C"
    ])
    expect(await area.idsOf(path(await make(where("price", "ge", "10.5"), "quotes")))).toEqual([
      "A",
      "C"
    ])
    expect((await send("GET", at(href))).status).toBe(422)
    // The symbol restricts the result, as every other parameter does.
    const dear = path(await make(where("price", "gt", "10.5"), "quotes"))
    expect(await area.idsOf(`${dear}&quotename=C&return=symbol`)).toEqual(["C"])
    expect(await area.idsOf(`${dear}&quotename=A`)).toEqual([])
    expect(await area.idsOf(`${dear}&quotename=NONE`)).toEqual([])
    expect((await send("GET", "/quotes?quotename=C&query=none")).status).toBe(400)
  })

  it("is a resource: shown, replaced, removed by its edit URI", async () => {
    const body = `<query on="customers"><title>Old ones</title>${where("age", "ge", "40")}</query>`
    const created = await send("POST", "/queries", { body })
    const href = created.header("location")
    const edit = /<([^>]+)>; rel="edit"/.exec(created.header("link"))?.[1] ?? ""
    expect(edit).toMatch(/~/)
    const answer = await send("GET", href)
    expect(answer.xml.attributes).toMatchObject({ on: "customers", href })
    expect(childOf(answer.xml, "where")?.attributes).toEqual({
      field: "age",
      op: "ge",
      value: "40"
    })
    expect(answer.text).not.toContain("~")
    const changed = body.replace("\"40\"", "\"50\"")
    expect((await send("PUT", href, { body: changed })).status).toBe(401)
    expect((await send("PUT", href, { body: changed, basic: area.nobody })).status).toBe(403)
    expect((await send("PUT", `${href}~wrong`, { body: changed })).status).toBe(404)
    expect((await send("GET", `${href}~wrong`)).status).toBe(404)
    const { etag } = await send("GET", edit)
    const stale = { body: changed, headers: { "If-Match": "\"stale\"" } }
    expect((await send("PUT", edit, stale)).status).toBe(412)
    const put = await send("PUT", edit, { body: changed, headers: { "If-Match": etag } })
    expect(put.status).toBe(200)
    expect(await area.idsOf(at(href))).toEqual(["e"])
    expect((await send("DELETE", href)).status).toBe(401)
    expect((await send("DELETE", edit)).status).toBe(204)
    expect((await send("GET", href)).status).toBe(410)
    expect((await send("DELETE", edit)).status).toBe(410)
    expect((await send("PUT", edit, { body })).status).toBe(410)
    expect((await send("GET", at(href))).status).toBe(422)
    const unknown = `${area.base}/queries/AAAAAAAAAAAAAAAAAAAAAA`
    expect((await send("GET", unknown)).status).toBe(404)
    expect((await send("GET", at(unknown))).status).toBe(422)
  })

  it("belongs to the account that made it, which sees it in its list", async () => {
    const body = "<query on=\"customers\"><title>Mine</title></query>"
    const headers = { "Idempotency-Key": "\"mine\"" }
    const basic = area.nobody
    const created = await send("POST", "/queries", { body, basic, headers })
    const repeated = await send("POST", "/queries", { body, basic, headers })
    expect(repeated.header("location")).toBe(created.header("location"))
    const href = created.header("location")
    const listed = async (options: Parameters<Area["send"]>[2]) =>
      childrenOf((await send("GET", "/queries", options)).xml, "query")
        .map(({ attributes }) => attributes["href"])
    expect(await listed({ basic })).toEqual([href])
    expect(await listed({})).toEqual([])
    expect((await send("DELETE", href, { basic: area.clerk })).status).toBe(403)
    expect((await send("DELETE", href, { basic })).status).toBe(204)
    expect(await listed({ basic })).toEqual([])
  })

  it("is JSON and a form, too", async () => {
    const json = {
      on: "customers",
      any: [{
        where: [{ field: "age", op: "ge", value: 50 }, { field: "id", op: "eq", value: "c" }]
      }],
      return: "name",
      order: { by: "age", direction: "desc" }
    }
    const type = "application/json"
    const created = await send("POST", "/queries", { body: JSON.stringify(json), type })
    expect(created.status, created.text).toBe(201)
    expect(await area.idsOf(at(created.header("location")))).toEqual(["e", "c"])
    const answer = await send("GET", created.header("location"), { accept: type })
    expect(answer.json).toMatchObject({ on: "customers", order: { by: "age", direction: "desc" } })
    const form = "title=F&on=customers&match=any&field1=name&op1=starts&value1=a&field2=age&" +
      "op2=eq&value2=20&field3=&op3=eq&value3=&return=name&order=age&direction=asc&limit="
    const byForm = await send("POST", "/queries", {
      body: form,
      type: "application/x-www-form-urlencoded"
    })
    expect(byForm.status, byForm.text).toBe(201)
    expect(await area.idsOf(at(byForm.header("location")))).toEqual(["c", "a"])
    const page = await send("GET", byForm.header("location"), { accept: "text/html" })
    expect(page.text).toContain("The result")
  })

  it.each([
    ["<query/>", 422],
    ["<query on=\"orders\"/>", 422],
    [`<query on="customers">${where("shoe", "eq", "44")}</query>`, 422],
    [`<query on="customers">${where("constructor", "eq", "44")}</query>`, 422],
    [`<query on="customers">${where("age", "like", "44")}</query>`, 422],
    [`<query on="customers">${where("age", "eq", "old")}</query>`, 422],
    [`<query on="customers">${where("age", "contains", "4")}</query>`, 422],
    [`<query on="quotes">${where("price", "eq", "1,5")}</query>`, 422],
    [`<query on="customers">${where("name", "eq", "x".repeat(201))}</query>`, 422],
    ["<query on=\"customers\"><not/></query>", 422],
    ["<query on=\"customers\"><not><all/><all/></not></query>", 422],
    ["<query on=\"customers\"><return>name shoe</return></query>", 422],
    ["<query on=\"customers\"><order by=\"shoe\"/></query>", 422],
    ["<query on=\"customers\"><order by=\"age\" direction=\"up\"/></query>", 422],
    ["<query on=\"customers\"><limit>0</limit></query>", 422],
    ["<query on=\"customers\"><limit>1</limit><limit>2</limit></query>", 422],
    ["<query on=\"customers\"><having/></query>", 422],
    [`<query on="customers">${"<not>".repeat(17)}<all/>${"</not>".repeat(17)}</query>`, 422],
    [`<query on="customers">${"<all/>".repeat(101)}</query>`, 422],
    ["<query on=\"customers\">", 400],
    ["<other/>", 422]
  ])("refuses %s with %i, saying why", async (body, status) => {
    const refused = await send("POST", "/queries", { body })
    expect(refused.status).toBe(status)
    expect(refused.child("detail")).toMatch(/\S/)
  })
})
