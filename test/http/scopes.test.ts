/** Scopes of tokens (protocol §7): what a token may do, what it may create, when it was used. */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { childrenOf, textOf } from "../../http/formats/xml/index.ts"
import { resourceTable } from "../../http/resource-table.ts"
import { adminToken, type Answered, type Harness, type Sending, startService } from "./harness.ts"

const admin = `admin:${adminToken}`
const notification = "<notification><item><description>d</description>" +
  "<url>http://example.org/m</url></item></notification>"

let service: Harness
beforeAll(async () => {
  service = await startService(resourceTable)
})
afterAll(() => service.close())

const send: Harness["send"] = (...request) => service.send(...request)

const open = async (name: string, roles = ""): Promise<string> => {
  const body = `<account><name>${name}</name>${roles}</account>`
  const created = await send("POST", "/accounts", { basic: admin, body })
  expect(created.status).toBe(201)
  return `${name}:${created.child("token")}`
}

/** The credentials of a new token of the account, by a token of it. */
const scoped = async (basic: string, scope: string): Promise<string> => {
  const name = basic.split(":")[0] ?? ""
  const body = `<token scope="${scope}"/>`
  const made = await send("POST", `/accounts/${name}/token`, { basic, body })
  expect([scope, made.status, made.xml.attributes["scope"]])
    .toEqual([scope, 201, scope])
  return `${name}:${textOf(made.xml)}`
}

const mailbox = async (basic: string, name: string): Promise<string> => {
  const headers = { Slug: name }
  expect((await send("POST", "/mailboxes", { basic, headers })).status).toBe(201)
  return `/mailboxes/${name}`
}

const problem = (answer: Answered) => [
  answer.status,
  answer.xml.name === "problem" ? answer.child("type")?.split("/").at(-1) : undefined,
  answer.xml.name === "problem" ? answer.child("scope") : undefined
]

describe("a token with scopes", () => {
  it("does what they allow, and nothing else, by Basic and as Bearer", async () => {
    const basic = await open("scoped")
    const path = await mailbox(basic, "scoped-box")
    const [reader, depositor] = [await scoped(basic, "read"), await scoped(basic, "deposit")]
    const bearer = (of: string): Sending => ({
      headers: { Authorization: `Bearer ${of.split(":")[1]}` }
    })
    for (const as of [{ basic: reader }, bearer(reader)]) {
      expect((await send("GET", path, as)).status).toBe(200)
      const refused = await send("POST", path, { ...as, body: notification })
      expect(problem(refused)).toEqual([403, "insufficient-scope", "deposit"])
    }
    for (const as of [{ basic: depositor }, bearer(depositor)]) {
      expect((await send("POST", path, { ...as, body: notification })).status).toBe(202)
      const refused = await send("GET", path, as)
      expect(problem(refused)).toEqual([403, "insufficient-scope", "read"])
      // What happened, to what, and what to do (RFC 6750 §3.1).
      const detail =
        "this token has the scope deposit, and this request needs read: use a token with it"
      expect(refused.child("detail")).toBe(detail)
      expect(refused.header("www-authenticate")).toBe(
        "Bearer realm=\"restante\", error=\"insufficient_scope\", " +
          `error_description="${detail}", scope="read"`
      )
    }
  })

  it("for one mailbox does nothing at another, nor outside", async () => {
    const basic = await open("bounded")
    const [one, other] = [await mailbox(basic, "bounded-1"), await mailbox(basic, "bounded-2")]
    const all = await scoped(basic, "mailbox:bounded-1")
    expect((await send("POST", one, { basic: all, body: notification })).status).toBe(202)
    expect((await send("GET", one, { basic: all })).status).toBe(200)
    for (const path of [other, "/mailboxes", "/accounts/bounded/tokens", "/outgoing/bounded"]) {
      const refused = await send("GET", path, { basic: all })
      expect([path, ...problem(refused).slice(0, 2)]).toEqual([path, 403, "insufficient-scope"])
      expect(refused.child("detail")).toContain("use a token without mailbox:bounded-1")
    }
    const reader = await scoped(basic, "read mailbox:bounded-1")
    expect((await send("GET", one, { basic: reader })).status).toBe(200)
    expect((await send("DELETE", one, { basic: reader })).status).toBe(403)
    expect((await send("GET", other, { basic: reader })).status).toBe(403)
    // The name counts, not the beginning of a name.
    await mailbox(basic, "bounded-11")
    expect((await send("GET", "/mailboxes/bounded-11", { basic: reader })).status).toBe(403)
  })

  it("reads public content as anybody does, and its owner's with the scope alone", async () => {
    const basic = await open("publisher")
    const reader = await scoped(basic, "read")
    const depositor = await scoped(basic, "deposit")
    const options = { type: "text/plain", body: "x" }
    const open1 = await send("POST", "/content", { basic: depositor, ...options })
    expect(open1.status).toBe(202)
    expect((await send("GET", open1.header("location"), { basic: depositor })).status).toBe(200)
    expect((await send("POST", "/content", { basic: reader, ...options })).status).toBe(403)
    const closed = await send("POST", "/content", {
      basic,
      ...options,
      headers: { "Message-Password": "generate" }
    })
    const path = closed.header("location")
    const statusOf = async (as: string) => (await send("GET", path, { basic: as })).status
    expect(await statusOf(depositor)).toBe(401)
    expect(await statusOf(reader)).toBe(await statusOf(basic))
  })

  it("has the roles of its account with the scope admin alone", async () => {
    const role = "<role>admin</role><role>customers</role>"
    const basic = await open("ruler", role)
    const manager = await scoped(basic, "admin")
    const reader = await scoped(basic, "send read deposit")
    expect((await send("GET", "/accounts", { basic: manager })).status).toBe(200)
    expect((await send("GET", "/cluster", { basic: manager })).status).toBe(200)
    const customer = "<customer id=\"c1\"><name>Neo</name><age>37</age></customer>"
    expect((await send("PUT", "/customers/c1", { basic: manager, body: customer })).status).toBe(
      201
    )
    for (const path of ["/accounts", "/cluster", "/archive"]) {
      expect(problem(await send("GET", path, { basic: reader })))
        .toEqual([403, "insufficient-scope", "admin"])
    }
    // An admin may see the outgoing notifications of others; this token is no admin's.
    const other = await open("ruled")
    expect((await send("GET", "/outgoing/ruled", { basic: other })).status).toBe(200)
    expect((await send("GET", "/outgoing/ruled", { basic })).status).toBe(200)
    expect(problem(await send("GET", "/outgoing/ruled", { basic: reader })))
      .toEqual([403, "forbidden", undefined])
  })
})

describe("a new token", () => {
  const make = (basic: string, options: Sending) =>
    send("POST", `/accounts/${basic.split(":")[0]}/token`, { basic, ...options })

  it("has a scope by XML, JSON and a form, and shows it in each representation", async () => {
    const basic = await open("asker")
    const xml = await make(basic, { body: "<token scope=\"deposit  read mailbox:b-1 read\"/>" })
    expect(xml.xml.attributes["scope"]).toBe("read deposit mailbox:b-1")
    const json = await make(basic, {
      body: JSON.stringify({ scope: "send" }),
      type: "application/json",
      accept: "application/json"
    })
    expect(json.json).toMatchObject({ scope: "send" })
    const fields: Array<[string, string]> = [["scope", "read"], ["scope", "admin"], [
      "mailbox",
      "b-2"
    ], ["expires", ""]]
    const form = await make(basic, {
      body: new URLSearchParams(fields).toString(),
      type: "application/x-www-form-urlencoded"
    })
    expect(form.xml.attributes["scope"]).toBe("admin read mailbox:b-2")
    expect((await make(basic, {})).xml.attributes["scope"]).toBe(undefined)
    const path = "/accounts/asker/tokens"
    const listed = await send("GET", path, { basic })
    expect(childrenOf(listed.xml, "token").map(({ attributes }) => attributes["scope"]))
      .toEqual([undefined, "read deposit mailbox:b-1", "send", "admin read mailbox:b-2", undefined])
    for (const accept of ["text/html", "text/plain", "application/json"]) {
      const { text } = await send("GET", path, { basic, accept })
      expect([accept, text]).toEqual([accept, expect.stringContaining("admin read mailbox:b-2")])
    }
    const page = await send("GET", path, { basic, accept: "text/html" })
    for (const scope of ["admin", "send", "read", "deposit"]) {
      expect(page.text).toMatch(new RegExp(`<input type="checkbox" value="${scope}"[^>]*"scope"`))
    }
  })

  it.each([
    "reed",
    "read mailbox:a mailbox:b",
    "mailbox:",
    "mailbox:A",
    "mailbox:a~secret",
    "mailbox"
  ])("is refused with the scope %s", async (scope) => {
    const body = new URLSearchParams([["scope", scope], ["scope", "send"], ["expires", "P30D"]])
    const refused = await make(admin, {
      body: body.toString(),
      type: "application/x-www-form-urlencoded",
      accept: "text/html"
    })
    expect([scope, refused.status]).toEqual([scope, 422])
    // The page has what was chosen.
    expect(refused.text).toMatch(/<input type="checkbox" value="send" checked/)
    expect(refused.text).not.toMatch(/<input type="checkbox" value="read" checked/)
  })

  it("has no more rights than the one that makes it", async () => {
    const basic = await open("climber", "<role>admin</role>")
    const manager = await scoped(basic, "admin read")
    for (const scope of ["admin", "read", "read mailbox:x"]) await scoped(manager, scope)
    for (const scope of ["", "send", "admin read deposit", "mailbox:x"]) {
      const refused = await make(manager, { body: `<token scope="${scope}"/>` })
      expect([scope, ...problem(refused).slice(0, 2)]).toEqual([scope, 403, "forbidden"])
      expect(refused.child("detail")).toContain("admin read")
    }
    // Nor by another account.
    const body = "<token/>"
    const others = await send("POST", "/accounts/admin/token", { basic: manager, body })
    expect(others.status).toBe(403)
    const created = await send("POST", "/accounts", {
      basic: manager,
      body: "<account><name>climbed</name><role>admin</role></account>"
    })
    expect([created.status, childrenOf(created.xml, "token")[0]?.attributes["scope"]])
      .toEqual([201, "admin read"])
    const first = `climbed:${created.child("token")}`
    expect((await send("GET", "/accounts", { basic: first })).status).toBe(200)
    expect((await make(first, { body })).status).toBe(403)
  })
})

describe("a keyed request", () => {
  it("is repeated to a token with the scope only", async () => {
    const basic = await open("repeater")
    await mailbox(basic, "repeater-box")
    const depositor = await scoped(basic, "deposit")
    const reader = await scoped(basic, "read")
    const headers = { "Idempotency-Key": "repeated-by-scopes" }
    const post = (as: string) =>
      send("POST", "/mailboxes/repeater-box", { basic: as, headers, body: notification })
    const first = await post(depositor)
    expect(first.status).toBe(202)
    expect((await post(depositor)).header("location")).toBe(first.header("location"))
    expect(problem(await post(reader))).toEqual([403, "insufficient-scope", "deposit"])
  })
})

describe("the last use of a token", () => {
  it("is shown, after requests at any node, and refuses no conditional change", async () => {
    const basic = await open("user")
    const token = await scoped(basic, "read")
    const { xml } = await send("GET", "/accounts/user/tokens", { basic })
    expect(childrenOf(xml, "token")[1]?.attributes["used"]).toBe(undefined)
    const uses = async () => {
      const listed = await send("GET", "/accounts/user/tokens", { basic })
      return childrenOf(listed.xml, "token").map(({ attributes }) => attributes["used"])
    }
    const beganMs = Date.now()
    for (const node of service.nodes) {
      expect((await send("GET", `${node}/mailboxes`, { basic: token })).status).toBe(200)
    }
    await expect.poll(uses, { timeout: 60_000 })
      .toEqual([expect.any(String), expect.any(String)])
    const [, used = ""] = await uses()
    expect(Math.abs(Date.parse(used) - beganMs)).toBeLessThan(60 * 60_000)
    for (const node of service.nodes) await send("GET", `${node}/mailboxes`, { basic: token })
    expect((await uses())[1]).toBe(used)
  })
})
