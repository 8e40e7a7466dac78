/** Several tokens of one account (protocol §4): named, expiring, listed, revoked. */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { accountTokensMax } from "../../actors/limits.ts"
import { childrenOf, textOf } from "../../http/formats/xml/index.ts"
import { resourceTable } from "../../http/resource-table.ts"
import { adminToken, type Answered, type Harness, type Sending, startService } from "./harness.ts"

const admin = `admin:${adminToken}`
const dayMs = 24 * 60 * 60 * 1000

let service: Harness
beforeAll(async () => {
  service = await startService(resourceTable)
})
afterAll(() => service.close())

const open = async (name: string): Promise<string> => {
  const body = `<account><name>${name}</name></account>`
  const created = await service.send("POST", "/accounts", { basic: admin, body })
  expect(created.status).toBe(201)
  return `${name}:${created.child("token")}`
}
const make = (name: string, options: Sending) =>
  service.send("POST", `/accounts/${name}/token`, options)
const list = (name: string, options: Sending) =>
  service.send("GET", `/accounts/${name}/tokens`, options)
const lifetimeMs = ({ xml: { attributes } }: Answered): number =>
  Date.parse(attributes["expires"] ?? "") - Date.parse(attributes["created"] ?? "")

describe("a token", () => {
  it("has a name and an end, as XML, JSON and a form ask for", async () => {
    const basic = await open("wisher")
    const xml = await make("wisher", {
      basic,
      body: "<token name=\"ci &amp; cd\" expires=\"P30D\"/>"
    })
    expect([xml.status, xml.xml.attributes["name"]]).toEqual([201, "ci & cd"])
    expect(Math.abs(lifetimeMs(xml) - 30 * dayMs)).toBeLessThan(dayMs)
    const json = await make("wisher", {
      basic,
      body: JSON.stringify({ name: "laptop", expires: "3600" }),
      type: "application/json",
      accept: "application/json"
    })
    expect(json.json).toMatchObject({ name: "laptop", text: expect.any(String) })
    const token = String(Object(json.json)["text"])
    const bearer = { headers: { Authorization: `Bearer ${token}` } }
    expect((await list("wisher", bearer)).status).toBe(200)
    const expires = new Date(Date.now() + 2 * dayMs).toISOString()
    const form = await make("wisher", {
      basic,
      body: new URLSearchParams({ name: "phone", expires }).toString(),
      type: "application/x-www-form-urlencoded",
      accept: "text/html"
    })
    expect([form.status, form.text]).toEqual([
      201,
      expect.stringMatching(/<pre>rst_[\w-]{43}<\/pre>/)
    ])
    const plain = await make("wisher", { basic })
    expect(Object.keys(plain.xml.attributes).toSorted()).toEqual(["created", "href", "id"])
    const { xml: all } = await list("wisher", { basic })
    expect(childrenOf(all, "token").map(({ attributes }) => attributes["name"]))
      .toEqual([undefined, "ci & cd", "laptop", "phone", undefined])
    const [, , , phone] = childrenOf(all, "token")
    expect(phone?.attributes["expires"]).toBe(expires)
  })

  it("422 for an invalid expiry or name, so that no token lasts forever by mistake", async () => {
    const basic = await open("chooser")
    const past = new Date(Date.now() - 1000).toISOString()
    const bodies = [
      "<token expires=\"soon\"/>",
      "<token expires=\"P\"/>",
      "<token expires=\"0\"/>",
      "<token expires=\"2030-01-31\"/>",
      `<token expires="${past}"/>`,
      "<token expires=\"P11Y\"/>",
      "<token expire=\"P30D\"/>",
      "<token><expires>P30D</expires></token>",
      `<token name="${"x".repeat(101)}"/>`,
      "<token name=\"a&#10;b\"/>"
    ]
    for (const body of bodies) {
      expect([body, (await make("chooser", { basic, body })).status]).toEqual([body, 422])
    }
    expect((await make("chooser", { basic, body: "<token" })).status).toBe(400)
    expect(childrenOf((await list("chooser", { basic })).xml)).toHaveLength(1)
  })

  it("is worth nothing when it has expired, at any node, and is forgotten then", async () => {
    const basic = await open("brief")
    const created = await make("brief", { basic, body: "<token expires=\"2\"/>" })
    const token = textOf(created.xml)
    const location = created.header("location")
    const everywhere = (options: Sending) =>
      Promise.all(
        service.nodes.map(async (node) =>
          (await service.send("GET", `${node}/accounts/brief`, options)).status
        )
      )
    const all = (status: number) => service.nodes.map(() => status)
    const asBearer = { headers: { Authorization: `Bearer ${token}` } }
    const polling = { timeout: 60_000 }
    await expect.poll(() => everywhere(asBearer), polling).toEqual(all(401))
    expect(await everywhere({ basic: `brief:${token}` })).toEqual(all(401))
    expect(await everywhere({ basic })).toEqual(all(200))
    expect((await service.send("GET", location, { basic })).status).toBe(404)
    const { records } = service.service
    const left = async () =>
      (await service.run(records.range("token-ids", { prefix: "brief.", limit: 10 }))).length
    await expect.poll(left, polling).toBe(1)
  })

  it("that has expired leaves room for another", async () => {
    const basic = await open("crowded")
    for (let n = 2; n < accountTokensMax; n += 1) {
      expect((await make("crowded", { basic })).status).toBe(201)
    }
    const brief = { basic, body: "<token expires=\"1\"/>" }
    expect((await make("crowded", brief)).status).toBe(201)
    const polling = { timeout: 60_000 }
    await expect.poll(async () => (await make("crowded", { basic })).status, polling).toBe(201)
    expect((await make("crowded", { basic })).status).toBe(409)
  })
})

describe("what a token that expires makes", () => {
  /** A token of an admin's account that expires, and when. */
  const expiring = async (name: string, expires: string) => {
    const body = `<account><name>${name}</name><role>admin</role></account>`
    const created = await service.send("POST", "/accounts", { basic: admin, body })
    const basic = `${name}:${created.child("token")}`
    const wish = `<token scope="admin" expires="${expires}"/>`
    const { status, xml } = await make(name, { basic, body: wish })
    expect(status).toBe(201)
    return { basic: `${name}:${textOf(xml)}`, lasting: basic, end: xml.attributes["expires"] ?? "" }
  }
  const endOf = ({ status, xml }: Answered) => [status, xml.attributes["expires"]]
  const openBy = async (basic: string, name: string) => {
    const body = `<account><name>${name}</name><role>admin</role></account>`
    const created = await service.send("POST", "/accounts", { basic, body })
    const [first] = childrenOf(created.xml, "token")
    if (first === undefined) throw new Error(`${created.status} without a token`)
    return { basic: `${name}:${textOf(first)}`, end: first.attributes["expires"] }
  }

  it("expires with it at the latest", async () => {
    const { basic, end, lasting } = await expiring("mortal", "P30D")
    expect(endOf(await make("mortal", { basic, body: "<token scope=\"admin\"/>" })))
      .toEqual([201, end])
    const within = (expires: string) => `<token scope="admin" expires="${expires}"/>`
    expect(endOf(await make("mortal", { basic, body: within(end) }))).toEqual([201, end])
    const sooner = await make("mortal", { basic, body: within("P1D") })
    expect([sooner.status, Math.round(lifetimeMs(sooner) / dayMs)]).toEqual([201, 1])
    for (const name of ["mortal", "admin"]) {
      const { length } = childrenOf((await list(name, { basic: admin })).xml)
      const refused = await make(name, { basic, body: within("P31D") })
      expect([refused.status, refused.child("detail")]).toEqual([
        403,
        `this token expires at ${end}, and the new one may not expire later: ` +
        "name no time or an earlier one, or use another token"
      ])
      expect(childrenOf((await list(name, { basic: admin })).xml)).toHaveLength(length)
    }
    expect(endOf(await make("admin", { basic, body: "<token scope=\"admin\"/>" })))
      .toEqual([201, end])
    for (const unbounded of [lasting, admin]) {
      expect(endOf(await make("mortal", { basic: unbounded }))).toEqual([201, undefined])
      const later = await make("mortal", { basic: unbounded, body: within("P31D") })
      expect([later.status, Math.round(lifetimeMs(later) / dayMs)]).toEqual([201, 31])
    }
  })

  it("is an account whose first token expires with it, too", async () => {
    const { basic, end, lasting } = await expiring("mortal-opener", "P30D")
    const first = await openBy(basic, "mortal-heir")
    expect(first.end).toBe(end)
    const body = "<token scope=\"admin\"/>"
    expect(endOf(await make("mortal-heir", { basic: first.basic, body }))).toEqual([201, end])
    const later = await make("mortal-heir", {
      basic: first.basic,
      body: "<token scope=\"admin\" expires=\"P31D\"/>"
    })
    expect(later.status).toBe(403)
    for (const unbounded of [lasting, admin]) {
      const { end: none } = await openBy(unbounded, `heir-of-${unbounded.split(":")[0]}`)
      expect(none).toBe(undefined)
    }
  })

  it("expires with it in a browser that is signed in with it, too", async () => {
    const { basic, end } = await expiring("mortal-browser", "P30D")
    const [account = "", token = ""] = basic.split(":")
    const type = "application/x-www-form-urlencoded"
    const origin = { "Sec-Fetch-Site": "same-origin" }
    const signedIn = await service.send("POST", "/sign-in", {
      body: new URLSearchParams({ account, token }).toString(),
      type,
      headers: origin
    })
    expect(signedIn.status).toBe(303)
    const Cookie = signedIn.header("set-cookie").split(";")[0] ?? ""
    const submit = (expires: string) =>
      make(account, {
        body: new URLSearchParams({ scope: "admin", expires }).toString(),
        type,
        headers: { ...origin, Cookie }
      })
    expect(endOf(await submit(""))).toEqual([201, end])
    expect((await submit("P90D")).status).toBe(403)
  })

  it("is worth nothing when it has expired, and its records are removed", async () => {
    const { basic } = await expiring("mortal-soon", "5")
    const first = await openBy(basic, "mortal-soon-heir")
    const status = async () => (await list("mortal-soon-heir", { basic: first.basic })).status
    const polling = { timeout: 60_000 }
    await expect.poll(status, polling).toBe(401)
    const left = service.service.records.range("token-ids", {
      prefix: "mortal-soon-heir.",
      limit: 10
    })
    await expect.poll(async () => (await service.run(left)).length, polling).toBe(0)
  })
})

describe("the tokens of an account", () => {
  it("are listed without themselves: for the account itself and admins", async () => {
    const basic = await open("lister")
    const created = await make("lister", { basic, body: "<token name=\"one\"/>" })
    const listed = await list("lister", { basic: admin })
    expect([listed.status, listed.header("cache-control")]).toEqual([200, "no-store"])
    expect(listed.text).not.toContain(textOf(created.xml))
    expect(childrenOf(listed.xml, "token").map(({ attributes }) => attributes["href"]))
      .toContain(created.header("location"))
    const json = await list("lister", { basic, accept: "application/json" })
    expect(json.json).toMatchObject({ token: [{ id: expect.any(String) }, { name: "one" }] })
    const page = await list("lister", { basic, accept: "text/html" })
    expect(page.text).toMatch(/<form[^>]*action="[^"]*\/accounts\/lister\/token"/)
    const other = await open("not-lister")
    expect((await list("lister", { basic: other })).status).toBe(403)
    expect((await list("lister", {})).status).toBe(401)
    expect((await list("nobody", { basic: admin })).status).toBe(404)
  })

  it("are revoked all at once, when they are those that were seen", async () => {
    const basic = await open("revoker")
    const second = `revoker:${textOf((await make("revoker", { basic })).xml)}`
    const path = "/accounts/revoker/tokens"
    const { etag } = await list("revoker", { basic })
    const third = `revoker:${textOf((await make("revoker", { basic })).xml)}`
    const stale = await service.send("DELETE", path, { basic, headers: { "If-Match": etag } })
    expect(stale.status).toBe(412)
    expect((await service.send("DELETE", path, { basic: second })).status).toBe(204)
    for (const one of [basic, second, third]) {
      expect((await list("revoker", { basic: one })).status).toBe(401)
    }
    const { records } = service.service
    const left = records.range("token-ids", { prefix: "revoker.", limit: 10 })
    expect(await service.run(left)).toEqual([])
    // An admin creates another token.
    const repeated = `revoker:${textOf((await make("revoker", { basic: admin })).xml)}`
    expect((await list("revoker", { basic: repeated })).status).toBe(200)
  })
})
