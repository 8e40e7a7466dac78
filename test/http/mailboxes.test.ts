/** Mailboxes as their owners see them (protocol §1.2). */
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { childOf, childrenOf } from "../../http/formats/xml/index.ts"
import { adminToken, type Answered } from "./harness.ts"
import { type Mailboxes, notification, owner, startMailboxes } from "./mailbox-harness.ts"

let service: Mailboxes

beforeAll(async () => {
  service = await startMailboxes()
})

afterAll(() => service.close())

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
    expect(childOf(answer.xml, "shared")?.attributes["href"]).toMatch(
      /\/mailboxes\/alice~[\w-]{43}$/
    )
    expect(answer.child("deposit")).toBe("anyone")
    expect(answer.child("retention")).toBe("P30D")
    expect(answer.child("fetch")).toBe("never")
    expect(answer.child("receipts")).toBe("none")
    const listing = await service.send("GET", "/mailboxes/alice", { basic: owner })
    expect(listing.text).not.toContain(answer.child("password"))
  })

  test("a taken name is 409, without an account 401, a bad name or setting 422", async () => {
    await service.open("taken")
    const conflict = await service.send("POST", "/mailboxes", {
      basic: service.bob,
      headers: { slug: "taken" }
    })
    expect(conflict.status).toBe(409)
    expect((await service.send("GET", "/mailboxes", { basic: service.bob })).text).not.toContain(
      "taken"
    )
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

  test("a form, JSON, no name; a repeated Idempotency-Key returns the same secrets", async () => {
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
      body: JSON.stringify({ name: "by-json", title: "J", fetch: "eager", "fetch-limit": 1000 }),
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
    const created = await service.send("POST", "/accounts", {
      basic: `admin:${adminToken}`,
      body: "<account><name>nobody</name><failure-reports>none</failure-reports></account>"
    })
    const empty = await service.send("GET", "/mailboxes", {
      basic: `nobody:${created.child("token")}`,
      accept: "application/json"
    })
    expect(empty.json).toEqual({ mailbox: [] })
    for (const name of ["own-1", "own-2", "own-3"]) await service.open(name)
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

describe("the owner", () => {
  test("PUT replaces the settings under If-Match", async () => {
    const { href } = await service.open("settings", "<title>Old</title>")
    const body = "<mailbox><title>New</title><retention>P7D</retention></mailbox>"
    expect((await service.send("PUT", href, { body })).status).toBe(401)
    expect((await service.send("PUT", href, { body, basic: service.bob })).status).toBe(403)
    const bad = await service.send("PUT", href, {
      body: "<mailbox><fetch>x</fetch></mailbox>",
      basic: owner
    })
    expect(bad.status).toBe(422)
    const { etag } = await service.send("GET", href, { basic: owner, accept: "application/json" })
    const headers = { "if-match": etag }
    const answer = await service.send("PUT", href, { body, basic: owner, headers })
    expect([answer.status, answer.child("title"), answer.child("retention")])
      .toEqual([200, "New", "P7D"])
    expect((await service.send("PUT", href, { body, basic: owner, headers })).status).toBe(412)
    const answered = await service.send("GET", href, { basic: owner })
    expect([answered.xml.attributes["title"], answered.child("retention")]).toEqual(["New", "P7D"])
    const back = await service.send("PUT", href, { body: answered.text, basic: owner })
    expect([back.status, back.child("title"), back.child("retention")]).toEqual([200, "New", "P7D"])
    const unknown = await service.send("PUT", "/mailboxes/no-such", { body, basic: owner })
    expect(unknown.status).toBe(404)
  })

  test("other secrets end the old ones", async () => {
    const { href, password, shared } = await service.open("secrets")
    expect((await service.send("POST", `${href}/password`)).status).toBe(401)
    expect((await service.send("POST", `${href}/password`, { basic: service.bob })).status).toBe(
      403
    )
    const answer = await service.send("POST", `${href}/password`, { basic: owner })
    expect(answer.status).toBe(200)
    expect(answer.header("cache-control")).toBe("no-store")
    const fresh = childOf(answer.xml, "shared")?.attributes["href"] ?? ""
    expect(answer.child("password")).not.toBe(password)
    expect((await service.send("GET", shared)).status).toBe(404)
    expect((await service.send("GET", fresh)).status).toBe(200)
  })

  test("A10: 204, then 410 for all paths below, not listed, its name stays used", async () => {
    const { href, shared } = await service.open("doomed")
    const location = (await service.deposit(href, "x")).header("location")
    expect((await service.send("DELETE", href)).status).toBe(401)
    expect((await service.send("DELETE", href, { basic: service.bob })).status).toBe(403)
    const stale = await service.send("DELETE", href, {
      basic: owner,
      headers: { "if-match": "\"x\"" }
    })
    expect(stale.status).toBe(412)
    expect((await service.send("DELETE", href, { basic: owner })).status).toBe(204)
    for (
      const [method, path] of [
        ["GET", href],
        ["GET", shared],
        ["POST", href],
        ["DELETE", href],
        ["PUT", href],
        ["GET", location],
        ["DELETE", location],
        ["POST", `${href}/password`]
      ] as const
    ) {
      const body = method === "POST"
        ? notification("y")
        : method === "PUT"
        ? "<mailbox/>"
        : undefined
      const answer = await service.send(method, path, {
        basic: owner,
        ...body === undefined ? {} : { body }
      })
      expect([method, path, answer.status]).toEqual([method, path, 410])
    }
    expect((await service.deposit(href, "z")).status).toBe(410)
    expect((await service.send("GET", href, { accept: "text/html" })).status).toBe(410)
    expect((await service.send("GET", "/mailboxes", { basic: owner })).text).not.toContain("doomed")
    const repeated = await service.send("POST", "/mailboxes", {
      basic: owner,
      headers: { slug: "doomed" }
    })
    expect(repeated.status).toBe(409)
  })

  test("OPTIONS and 405 with Allow", async () => {
    const { href } = await service.open("methods")
    const options = await service.send("OPTIONS", href)
    expect([options.status, options.header("allow")])
      .toEqual([204, "GET, HEAD, POST, PUT, DELETE, OPTIONS"])
    const patch = await service.send("PATCH", href, { basic: owner, body: "<a/>" })
    expect([patch.status, patch.header("allow")])
      .toEqual([405, "GET, HEAD, POST, PUT, DELETE, OPTIONS"])
    expect((await service.send("GET", `${href}/password`, { basic: owner })).status).toBe(405)
  })
})
