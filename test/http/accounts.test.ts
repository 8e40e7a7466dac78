/** Accounts by their protocol (protocol §4): status, header and parsed body of each row. */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { contentOverheadBytes } from "../../actors/limits.ts"
import { childOf, childrenOf, textOf } from "../../http/formats/xml/index.ts"
import { bootstrap } from "../../http/resources/accounts/bootstrap.ts"
import { resourceTable } from "../../http/resource-table.ts"
import { adminToken, type Answered, type Harness, startService } from "./harness.ts"

const admin = `admin:${adminToken}`
const formType = "application/x-www-form-urlencoded"

let service: Harness

beforeAll(async () => {
  service = await startService(resourceTable)
})
afterAll(() => service.close())

const send: Harness["send"] = (...request) => service.send(...request)

const create = (name: string, roles: ReadonlyArray<string> = [], basic = admin) =>
  send("POST", "/accounts", {
    basic,
    body: `<account><name>${name}</name>${
      roles.map((role) => `<role>${role}</role>`).join("")
    }</account>`
  })

const tokenOf = (answered: Answered): string => {
  const { xml } = answered
  const node = xml.name === "token" ? xml : childOf(xml, "token")
  return node === undefined ? "" : textOf(node)
}

const bearer = (token: string) => ({ Authorization: `Bearer ${token}` })

describe("POST /accounts", () => {
  it("answers 201, Location and the token, which is shown once", async () => {
    const created = await create("alice", ["quotes", "customers"])
    expect(created.status).toBe(201)
    expect(created.header("location")).toBe(`${service.base}/accounts/alice`)
    expect(created.header("cache-control")).toBe("no-store")
    expect(created.xml.name).toBe("account")
    expect(childrenOf(created.xml, "role").map(textOf)).toEqual(["quotes", "customers"])
    const token = tokenOf(created)
    expect(token).toMatch(/^rst_[A-Za-z0-9_-]{43}$/)
    const own = await send("GET", "/accounts/alice", { basic: `alice:${token}` })
    expect([own.status, own.child("name")]).toEqual([200, "alice"])
    expect(own.text).not.toContain(token)
    const byBearer = await send("GET", "/accounts/alice", { headers: bearer(token) })
    expect(byBearer.text).toBe(own.text)
  })

  it("is for admins: 401 with a challenge, 403", async () => {
    const nobody = await send("POST", "/accounts", { body: "<account><name>x</name></account>" })
    expect(nobody.status).toBe(401)
    expect(nobody.header("www-authenticate")).toMatch(/Basic realm="restante".*Bearer/)
    const token = tokenOf(await create("no-admin"))
    expect((await create("x", [], `no-admin:${token}`)).status).toBe(403)
    expect((await create("x", [], "admin:wrong")).status).toBe(401)
  })

  it("409 for a taken name, 422 for a bad one, 400 and 415 for other bodies", async () => {
    expect((await create("taken")).status).toBe(201)
    expect((await create("taken")).status).toBe(409)
    expect((await create("admin")).status).toBe(409)
    for (const name of ["", "Alice", "-a", "a.b", "x".repeat(65)]) {
      expect([name, (await create(name)).status]).toEqual([name, 422])
    }
    expect((await create("ok", ["king"])).status).toBe(422)
    const status = async (body: string, type?: string) =>
      (await send("POST", "/accounts", {
        basic: admin,
        body,
        ...type === undefined ? {} : { type }
      }))
        .status
    expect(await status("<account/>")).toBe(422)
    expect(await status("<account><name>a</name><name>b</name></account>")).toBe(422)
    expect(await status("<account><name>a</name><password>b</password></account>")).toBe(422)
    expect(await status("<account>")).toBe(400)
    expect(await status("name", "text/plain")).toBe(415)
  })

  it("accepts JSON and forms", async () => {
    const json = await send("POST", "/accounts", {
      basic: admin,
      body: JSON.stringify({ name: "json", role: ["quotes"] }),
      type: "application/json",
      accept: "application/json"
    })
    expect(json.status).toBe(201)
    expect(json.json).toMatchObject({ name: "json", role: ["quotes"], token: [{}] })
    const form = await send("POST", "/accounts", {
      basic: admin,
      body: "name=formed&role=",
      type: formType,
      accept: "text/html"
    })
    expect([form.status, form.header("content-type")]).toEqual([201, "text/html; charset=utf-8"])
    expect(form.text).toMatch(/<pre>rst_[A-Za-z0-9_-]{43}<\/pre>/)
  })

  it("creates one account and one token for one Idempotency-Key", async () => {
    const body = "<account><name>once</name></account>"
    const headers = { "Idempotency-Key": "once-only" }
    const first = await send("POST", "/accounts", { basic: admin, body, headers })
    const repeated = await send("POST", "/accounts", { basic: admin, body, headers })
    expect([first.status, repeated.status]).toEqual([201, 201])
    expect(tokenOf(repeated)).toBe(tokenOf(first))
  })
})

describe("reading", () => {
  it("GET /accounts: all of them for admins, paged", async () => {
    await create("list-a")
    await create("list-b", ["quotes"])
    const names: Array<string> = []
    let next: string | undefined = "/accounts?limit=2"
    while (next !== undefined) {
      const listing: Answered = await send("GET", next, { basic: admin })
      expect([listing.status, listing.xml.name]).toEqual([200, "accounts"])
      for (const account of childrenOf(listing.xml)) {
        names.push(textOf(childOf(account, "name") ?? account))
      }
      next = /<([^>]+)>; rel="next"/.exec(listing.headers.get("link") ?? "")?.[1]
    }
    expect(names).toEqual([...new Set(names)].sort())
    expect(names).toEqual(expect.arrayContaining(["admin", "list-a", "list-b"]))
    expect((await send("GET", "/accounts")).status).toBe(401)
  })

  it("GET /accounts/{name}: itself or an admin; others 403; unknown 404", async () => {
    const token = tokenOf(await create("reader"))
    const basic = `reader:${token}`
    const mine = await send("GET", "/accounts/reader", { basic })
    expect(mine.status).toBe(200)
    expect((await send("GET", "/accounts/reader", { basic: admin })).status).toBe(200)
    expect((await send("GET", "/accounts/admin", { basic })).status).toBe(403)
    expect((await send("GET", "/accounts/nobody", { basic })).status).toBe(403)
    expect((await send("GET", "/accounts/nobody", { basic: admin })).status).toBe(404)
    expect((await send("GET", "/accounts/a.b", { basic: admin })).status).toBe(404)
    const headers = { "If-None-Match": mine.etag }
    expect((await send("GET", "/accounts/reader", { basic, headers })).status).toBe(304)
  })
})

describe("the page of an account", () => {
  const quota = 100_000

  it("shows what its content takes of its quota, in words and as a bar", async () => {
    const small = await startService(resourceTable, { quotas: { accountBytesMax: quota } })
    const read = (accept: string) => small.send("GET", "/accounts/admin", { basic: admin, accept })
    try {
      const before = await read("text/html")
      expect(before.text).toContain("0 B of 97.7 KiB")
      expect(before.text).toContain("aria-label=\"Share of the quota: 0 %\"")
      const document = await read("application/xml")
      const body = "x".repeat(quota / 2)
      const published = await small.send("POST", "/content", {
        basic: admin,
        type: "text/plain",
        body
      })
      expect(published.status).toBe(202)
      const percent = Math.round(100 * (quota / 2 + contentOverheadBytes) / quota)
      const { text } = await read("text/html")
      expect(text).toContain("href=\"/content?owner=admin\"")
      expect(text).toContain(`aria-label="Share of the quota: ${percent} %"`)
      expect(text).toContain(`${percent} %<svg class="share" role="img"`)
      // What an account publishes does not change it for conditional requests by programs.
      expect((await read("application/xml")).etag).toBe(document.etag)
    } finally {
      await small.close()
    }
  })
})

describe("DELETE /accounts/{name}", () => {
  it("by an admin: 204, then 410, and its tokens are worth nothing", async () => {
    const token = tokenOf(await create("leaver"))
    const basic = `leaver:${token}`
    expect((await send("DELETE", "/accounts/leaver", { basic })).status).toBe(403)
    const headers = { "If-Match": `"other"` }
    expect((await send("DELETE", "/accounts/leaver", { basic: admin, headers })).status).toBe(412)
    expect((await send("DELETE", "/accounts/leaver", { basic: admin })).status).toBe(204)
    expect((await send("GET", "/accounts/leaver", { basic: admin })).status).toBe(410)
    expect((await send("DELETE", "/accounts/leaver", { basic: admin })).status).toBe(410)
    expect((await send("GET", "/accounts/leaver", { basic })).status).toBe(401)
    expect((await send("GET", "/accounts/leaver", { headers: bearer(token) })).status).toBe(401)
    expect((await create("leaver")).status).toBe(409)
    const left = service.service.records.range("token-ids", { prefix: "leaver.", limit: 1 })
    expect(await service.run(left)).toEqual([])
  })

  it("not the last admin: 409", async () => {
    expect((await send("DELETE", "/accounts/admin", { basic: admin })).status).toBe(409)
    expect((await send("GET", "/accounts/admin", { basic: admin })).status).toBe(200)
  })
})

describe("tokens", () => {
  it("POST creates another, shown once; DELETE revokes it", async () => {
    const first = tokenOf(await create("keeper"))
    const basic = `keeper:${first}`
    const created = await send("POST", "/accounts/keeper/token", { basic })
    expect([created.status, created.header("cache-control")]).toEqual([201, "no-store"])
    const second = tokenOf(created)
    const location = created.header("location")
    expect(location).toMatch(/\/accounts\/keeper\/tokens\/[A-Za-z0-9_-]{22}$/)
    expect((await send("GET", location, { headers: bearer(second) })).text).not.toContain(second)
    const account = await send("GET", "/accounts/keeper", { basic })
    expect(childrenOf(account.xml, "token")).toHaveLength(2)
    expect((await send("DELETE", location, { basic })).status).toBe(204)
    expect((await send("DELETE", location, { basic })).status).toBe(404)
    expect((await send("GET", location, { basic })).status).toBe(404)
    expect((await send("GET", "/accounts/keeper", { headers: bearer(second) })).status).toBe(401)
    expect((await send("GET", "/accounts/keeper", { basic })).status).toBe(200)
  })

  it("are created by the account itself or an admin, and bounded in number", async () => {
    const token = tokenOf(await create("many"))
    expect((await send("POST", "/accounts/many/token")).status).toBe(401)
    expect((await send("POST", "/accounts/admin/token", { basic: `many:${token}` })).status).toBe(
      403
    )
    expect((await send("POST", "/accounts/nobody/token", { basic: admin })).status).toBe(404)
    for (let count = 1; count < 16; count++) {
      expect((await send("POST", "/accounts/many/token", { basic: admin })).status).toBe(201)
    }
    expect((await send("POST", "/accounts/many/token", { basic: admin })).status).toBe(409)
  })

  it("are stored as hashes only", async () => {
    const token = tokenOf(await create("hashed"))
    const { records } = service.service
    const entries = await service.run(records.range("tokens", { limit: 1000 }))
    expect(JSON.stringify(entries)).not.toContain(token)
    expect(entries.some(({ value }) => value === "hashed")).toBe(true)
  })
})

describe("bootstrap", () => {
  it("makes up a token for an empty store, and nothing for another", async () => {
    const fresh = await startService(resourceTable, {}, { adminToken: undefined })
    const { token } = fresh.bootstrapped
    expect(fresh.bootstrapped.created).toBe(true)
    const basic = `admin:${token}`
    expect((await fresh.send("GET", "/accounts", { basic })).status).toBe(200)
    expect(await fresh.run(bootstrap(fresh.service, undefined))).toEqual({ created: false })
    expect(await fresh.run(bootstrap(fresh.service, "chosen"))).toEqual({ created: false })
    for (const one of [basic, "admin:chosen"]) {
      expect((await fresh.send("GET", "/accounts", { basic: one })).status).toBe(200)
    }
    await fresh.close()
  })

  it("puts a changed operator's token in place of the one before", async () => {
    const fresh = await startService(resourceTable)
    await fresh.run(bootstrap(fresh.service, "second"))
    await fresh.run(bootstrap(fresh.service, "second"))
    expect((await fresh.send("GET", "/accounts", { basic: "admin:second" })).status).toBe(200)
    expect((await fresh.send("GET", "/accounts", { headers: bearer("second") })).status).toBe(200)
    expect((await fresh.send("GET", "/accounts", { basic: admin })).status).toBe(401)
    const entries = await fresh.run(fresh.service.records.range("tokens", { limit: 10 }))
    expect(entries).toHaveLength(1)
    await fresh.close()
  })
})
