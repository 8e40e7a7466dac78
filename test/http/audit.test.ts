/** The audit log: what it records, who may read it, and that no change is missed (protocol §7). */
import { Effect } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { childrenOf } from "../../http/formats/xml/index.ts"
import { resourceTable } from "../../http/resource-table.ts"
import { StorageUnavailable } from "../../runtime/index.ts"
import { adminToken, type Harness, startService } from "./harness.ts"

const admin = `admin:${adminToken}`
let service: Harness
let alice: string

const send: Harness["send"] = (...request) => service.send(...request)

const notification = "<notification><item><description>a secret text</description>" +
  "<url>http://example.org/</url></item></notification>"

beforeAll(async () => {
  service = await startService(resourceTable, { trustedProxies: ["127.0.0.0/8"] })
  const body = "<account><name>alice</name><role>quotes</role></account>"
  const created = await send("POST", "/accounts", { basic: admin, body })
  alice = `alice:${created.child("token")}`
})
afterAll(() => service.close())

/** The entries of a query, newest first, without what differs in each run. */
const entriesOf = async (query: string): Promise<ReadonlyArray<Record<string, string>>> => {
  const { xml } = await send("GET", `/audit?${query}`, { basic: admin })
  return childrenOf(xml, "entry").map(({ attributes }) => {
    const { hash: _hash, number: _number, of: _of, time: _time, ...rest } = attributes
    return rest
  })
}

describe("the audit log records", () => {
  it("accounts and tokens", async () => {
    const from = "127.0.0.1"
    expect(await entriesOf("action=account.create")).toEqual([{
      account: "admin",
      action: "account.create",
      detail: "roles: quotes",
      from,
      outcome: "done",
      target: "/accounts/alice"
    }])
    const again = "<account><name>alice</name></account>"
    expect((await send("POST", "/accounts", { basic: admin, body: again })).status).toBe(409)
    expect(await entriesOf("action=account.create&limit=1")).toMatchObject([{ outcome: "refused" }])
    const made = await send("POST", "/accounts/alice/token", { basic: alice })
    const path = new URL(made.header("location")).pathname
    expect((await send("DELETE", path, { basic: alice })).status).toBe(204)
    expect(await entriesOf("account=alice&target=/accounts/alice/tokens")).toEqual([
      { account: "alice", action: "token.revoke", from, outcome: "done", target: path },
      {
        account: "alice",
        action: "token.create",
        from,
        outcome: "done",
        target: "/accounts/alice/tokens"
      }
    ])
    // An operation has two entries; the first says that it began.
    expect(await entriesOf("account=alice&outcome=begun")).toHaveLength(2)
    await send("POST", "/accounts", {
      basic: admin,
      body: "<account><name>bob</name></account>"
    })
    expect((await send("DELETE", "/accounts/bob", { basic: admin })).status).toBe(204)
    expect(await entriesOf("target=/accounts/bob")).toMatchObject([
      { action: "account.remove", outcome: "done" },
      { action: "account.create", outcome: "done" }
    ])
  })

  it("the start that set the operator's token", async () => {
    expect(await entriesOf("action=operator-token.set")).toEqual([
      { action: "operator-token.set", outcome: "done", target: "/accounts/admin" }
    ])
  })

  it("mailboxes, and what an admin removes of others", async () => {
    const headers = { Slug: "audited" }
    expect((await send("POST", "/mailboxes", { basic: alice, headers })).status).toBe(201)
    expect((await send("POST", "/mailboxes/audited/password", { basic: alice })).status).toBe(200)
    const deposit = () => send("POST", "/mailboxes/audited", { body: notification })
    const deposited = await deposit()
    expect((await send("DELETE", deposited.header("location"), { basic: admin })).status).toBe(204)
    const read = (await deposit()).header("location")
    expect((await send("DELETE", read, { basic: alice })).status).toBe(204)
    const path = new URL(deposited.header("location")).pathname
    expect((await send("DELETE", "/mailboxes/audited", { basic: admin })).status).toBe(204)
    expect(await entriesOf("target=/mailboxes/audited")).toMatchObject([
      { account: "admin", action: "mailbox.remove", outcome: "done" },
      { account: "admin", action: "notification.remove", outcome: "done", target: path },
      { account: "alice", action: "mailbox.secrets", outcome: "done" },
      { account: "alice", action: "mailbox.create", outcome: "done" }
    ])
    const content = await send("POST", "/content", { body: "text", type: "text/plain" })
    const uri = content.header("location")
    expect((await send("DELETE", uri, { basic: admin })).status).toBe(204)
    const begun = await send("POST", "/sessions", {
      basic: alice,
      body: "<answer continue=\"true\"/>"
    })
    const session = new URL(begun.header("location")).pathname
    expect((await send("DELETE", session, { basic: admin })).status).toBe(204)
    expect(await entriesOf("account=admin&limit=2")).toMatchObject([
      { action: "session.remove", target: session },
      { action: "content.remove", target: new URL(uri).pathname }
    ])
  })

  it("what an admin removes and changes of others, and not what its owner does", async () => {
    const sent = async () => {
      const to = "<to>http://127.0.0.1:9/none</to>"
      const body = notification.replace("<item>", `${to}<item>`)
      const answer = await send("POST", "/outgoing/alice", { basic: alice, body })
      return new URL(answer.header("location")).pathname
    }
    const query = async () => {
      const body = "<query on=\"customers\"><all/></query>"
      const answer = await send("POST", "/queries", { basic: alice, body })
      return new URL(answer.header("location")).pathname
    }
    const cabinet = async () => {
      const body = "<cabinet><mailbox href=\"/mailboxes/of-alice\"/></cabinet>"
      const answer = await send("POST", "/cabinets", { basic: alice, body })
      return new URL(answer.header("location")).pathname
    }
    const named = { basic: alice, headers: { Slug: "of-alice" } }
    expect((await send("POST", "/mailboxes", named)).status).toBe(201)
    const before = await entriesOf("account=alice")
    for (const path of [await sent(), await query(), await cabinet()]) {
      expect((await send("DELETE", path, { basic: alice })).status).toBe(204)
    }
    expect(await entriesOf("account=alice")).toEqual(before)
    const [withdrawn, changed, removed] = [await sent(), await query(), await cabinet()]
    expect((await send("POST", `${withdrawn}/withdrawal`, { basic: admin })).status).toBe(202)
    expect((await send("DELETE", withdrawn, { basic: admin })).status).toBe(204)
    const body = "<query on=\"customers\"><all/></query>"
    expect((await send("PUT", changed, { basic: admin, body })).status).toBe(200)
    expect((await send("DELETE", changed, { basic: admin })).status).toBe(204)
    expect((await send("DELETE", removed, { basic: admin })).status).toBe(204)
    const span = "/outgoing/alice/retry?since=2026-01-01T00:00:00Z"
    const pauses = "<pauses status=\"active\"/>"
    for (const basic of [alice, admin]) {
      expect((await send("PUT", "/outgoing/alice/pauses", { basic, body: pauses })).status)
        .toBe(200)
      expect((await send("POST", span, { basic })).status).toBe(202)
    }
    expect(await entriesOf("account=alice&action=outgoing.retry")).toEqual([])
    expect(await entriesOf("account=alice&action=outgoing.pauses")).toEqual([])
    expect(await entriesOf("account=admin&outcome=done&limit=7")).toMatchObject([
      { action: "outgoing.retry", target: "/outgoing/alice" },
      { action: "outgoing.pauses", target: "/outgoing/alice/pauses" },
      { action: "cabinet.remove", target: removed },
      { action: "query.remove", target: changed },
      { action: "query.change", target: changed },
      { action: "outgoing.remove", target: withdrawn },
      { action: "outgoing.withdraw", target: withdrawn }
    ])
  })

  it("a backup that was taken", async () => {
    expect((await send("GET", "/archive", { basic: admin })).status).toBe(200)
    expect(await entriesOf("action=backup.take")).toMatchObject([
      { account: "admin", outcome: "done", target: "/archive" }
    ])
  })

  it("refused operations of admins: the first of a client, the tenth, and not each", async () => {
    const headers = { "X-Forwarded-For": "203.0.113.9" }
    for (let round = 0; round < 12; round++) {
      const path = `${service.nodes[0] ?? ""}/accounts`
      expect((await send("GET", path, { basic: alice, headers })).status).toBe(403)
    }
    const refused = { account: "alice", from: "203.0.113.9", outcome: "refused" }
    expect(await entriesOf("action=admin.refused&account=alice")).toMatchObject([
      { ...refused, count: "10", target: "GET /accounts" },
      { ...refused, count: "1", target: "GET /accounts" }
    ])
  })

  it("few refused operations of an account, and each that succeeds", async () => {
    const body = "<account><name>mallory</name></account>"
    const created = await send("POST", "/accounts", { basic: admin, body })
    const mallory = `mallory:${created.child("token")}`
    await send("POST", "/mailboxes", { basic: alice, headers: { Slug: "coveted" } })
    await send("POST", "/mailboxes", { basic: mallory, headers: { Slug: "mallorys" } })
    const session = "/accounts/mallory/browser-sessions/unknown"
    const token = "/accounts/mallory/tokens/unknown"
    const secret = {
      body: "<webhook-secret><secret>an-invented-secret</secret></webhook-secret>"
    }
    const slug = (name: string) => ({ headers: { Slug: name } })
    const kinds: ReadonlyArray<readonly [string, string, number, Parameters<typeof send>[2]?]> = [
      ["POST", "/mailboxes", 409, slug("coveted")],
      ["POST", "/mailboxes", 409, slug("mallorys")],
      ["DELETE", "/mailboxes/coveted", 403],
      ["DELETE", "/mailboxes/coveted", 403, { headers: { "If-Match": "*" } }],
      ["POST", "/mailboxes/coveted/password", 403],
      ["POST", "/mailboxes/mallorys~wrong/password", 404],
      ["PUT", "/mailboxes/coveted/webhook-secret", 403, secret],
      ["DELETE", "/mailboxes/coveted/webhook-secret", 403],
      ["DELETE", token, 404],
      ["DELETE", session, 404]
    ]
    const before = (await entriesOf("account=mallory&limit=1000")).length
    for (const [method, path, status, options] of kinds) {
      for (let round = 0; round < 12; round++) {
        const answer = await send(method, path, { basic: mallory, ...options })
        expect([method, path, answer.status]).toEqual([method, path, status])
      }
    }
    const entries = (await entriesOf("account=mallory&limit=1000")).slice(0, -before)
    expect(entries.every(({ outcome }) => outcome === "refused")).toBe(true)
    // On each node the first and the tenth of an action, of which there are five.
    expect(entries.length).toBeLessThanOrEqual(5 * 2 * service.nodes.length)
    expect(new Set(entries.map(({ action }) => action))).toEqual(
      new Set(["mailbox.create", "mailbox.remove", "mailbox.secrets", "token.revoke", "sign-out"])
    )
    expect(await entriesOf("account=mallory&outcome=begun&action=mailbox.secrets")).toEqual([])
    const own = "/mailboxes/mallorys/webhook-secret"
    for (let round = 0; round < 3; round++) {
      expect((await send("DELETE", own, { basic: mallory })).status).toBe(204)
    }
    for (const outcome of ["begun", "done"]) {
      const all = await entriesOf(`account=mallory&outcome=${outcome}&action=mailbox.secrets`)
      expect(all).toHaveLength(3)
    }
  })

  it("few refused tokens beyond those that an account may have", async () => {
    const body = "<account><name>hoarder</name></account>"
    const created = await send("POST", "/accounts", { basic: admin, body })
    const hoarder = { basic: `hoarder:${created.child("token")}` }
    const make = () => send("POST", "/accounts/hoarder/token", hoarder)
    let answer = await make()
    while (answer.status === 201) answer = await make()
    expect(answer.status).toBe(409)
    for (let round = 0; round < 12; round++) expect((await make()).text).toBe(answer.text)
    const refused = await entriesOf("account=hoarder&action=token.create&outcome=refused")
    expect(refused.length).toBeGreaterThan(0)
    expect(refused.length).toBeLessThanOrEqual(2 * service.nodes.length)
    const begun = await entriesOf("account=hoarder&action=token.create&outcome=begun&limit=1000")
    const done = await entriesOf("account=hoarder&action=token.create&outcome=done&limit=1000")
    expect(begun).toHaveLength(done.length)
  })

  it("no secret and no content", async () => {
    await send("POST", "/mailboxes", { basic: alice, headers: { Slug: "sealed" } })
    const opened = await send("POST", "/mailboxes/sealed/password", { basic: alice })
    const shared = /sealed~([A-Za-z0-9_-]+)/.exec(opened.text)?.[1] ?? ""
    const uri = `/mailboxes/sealed~${shared}`
    expect((await send("DELETE", uri, { basic: alice })).status).toBe(204)
    const { text } = await send("GET", "/audit/chain?limit=1000", { basic: admin })
    const password = opened.child("password") ?? ""
    for (const secret of [shared, password, alice.split(":")[1] ?? "", adminToken, "secret text"]) {
      expect(secret).not.toBe("")
      expect(text).not.toContain(secret)
    }
  })
})

describe("an operation whose entry cannot be stored", () => {
  it("does not happen", async () => {
    const body = "<account><name>carol</name></account>"
    const originals = service.services.map((one) => one.system.ask)
    for (const { system } of service.services) {
      const { ask } = system
      // The store of the log does not answer, that of the accounts does.
      Object.assign(system, {
        ask: ((to, message) =>
          to.kind === "audit"
            ? Effect.fail(new StorageUnavailable({ detail: "no answer" }))
            : ask(to, message)) satisfies typeof ask
      })
    }
    expect((await send("POST", "/accounts", { basic: admin, body })).status).toBe(503)
    for (const [at, one] of service.services.entries()) {
      Object.assign(one.system, { ask: originals[at] })
    }
    expect((await send("GET", "/accounts/carol", { basic: admin })).status).toBe(404)
    expect(await entriesOf("target=/accounts/carol")).toEqual([])
  })
})

describe("an operation of an account whose outcome is unknown", () => {
  it("has an entry before it and one after it", async () => {
    const headers = { Slug: "uncertain" }
    const originals = service.services.map((one) => one.system.ask)
    for (const { system } of service.services) {
      const { ask } = system
      Object.assign(system, {
        ask: ((to, message) =>
          to.kind === "mailbox" && "_tag" in message && message._tag === "Create"
            ? Effect.andThen(
              Effect.exit(ask(to, message)),
              Effect.fail(new StorageUnavailable({ detail: "no answer" }))
            )
            : ask(to, message)) satisfies typeof ask
      })
    }
    expect((await send("POST", "/mailboxes", { basic: alice, headers })).status).toBe(503)
    for (const [at, one] of service.services.entries()) {
      Object.assign(one.system, { ask: originals[at] })
    }
    const target = "target=/mailboxes/uncertain"
    expect(await entriesOf(target)).toMatchObject([{ outcome: "unknown" }])
    expect(await entriesOf(`${target}&outcome=begun`)).toHaveLength(1)
    // Its name is in the list of the account, and the mailbox exists.
    expect((await send("GET", "/mailboxes", { basic: alice })).text).toContain("uncertain")
  })
})

describe("the listing", () => {
  it("is for admins only", async () => {
    for (const path of ["/audit", "/audit/chain"]) {
      expect((await send("GET", path)).status).toBe(401)
      expect((await send("GET", path, { basic: alice })).status).toBe(403)
    }
  })

  it("has a badge for the outcome of each operation on its page, which fits a phone", async () => {
    const { text } = await send("GET", "/audit", { basic: admin, accept: "text/html" })
    expect(text).toContain("<div class=\"scroll stack\" role=\"region\" id=\"audit-log-table\"")
    const rows = text.match(/<tr><td><time [^]*?<\/tr>/g) ?? []
    expect(rows.length).toBeGreaterThan(4)
    for (const row of rows) {
      expect(row).toMatch(/<span class="badge (?:good|wait|bad)">. (?:begun|done|refused|unknown)</)
    }
  })

  it("is paged, newest first, with the same filter", async () => {
    const all = await entriesOf("account=admin&limit=1000")
    expect(all.length).toBeGreaterThan(4)
    const paged: Array<Record<string, string>> = []
    let path: string | undefined = "/audit?account=admin&limit=2"
    while (path !== undefined) {
      const answer = await send("GET", path, { basic: admin })
      const rows = childrenOf(answer.xml, "entry")
      expect(rows.length).toBeLessThanOrEqual(2)
      paged.push(...rows.map(({ attributes }) => attributes))
      const [, next] = /<([^>]*)>; rel="next"/.exec(answer.headers.get("link") ?? "") ?? []
      path = next
    }
    expect(paged.map(({ action, target }) => [action, target]))
      .toEqual(all.map(({ action, target }) => [action, target]))
    const numbers = paged.map(({ number }) => Number(number))
    expect(numbers).toEqual(numbers.toSorted((a, b) => b - a))
    expect(await entriesOf("since=2999-01-01T00:00:00Z")).toEqual([])
  })

  it("rejects what is no filter", async () => {
    for (const query of ["action=everything", "outcome=good", "since=yesterday", "after=x"]) {
      expect((await send("GET", `/audit?${query}`, { basic: admin })).status).toBe(400)
    }
  })
})
