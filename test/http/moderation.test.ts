/** Reports of notifications, and blocks of depositors (protocol §7). */
import { Effect } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { childOf, childrenOf } from "../../http/formats/xml/index.ts"
import type { Service } from "../../http/pipeline/index.ts"
import { reportHostsMax } from "../../http/limits.ts"
import { resourceTable } from "../../http/resource-table.ts"
import type { RecordChange } from "../../runtime/index.ts"
import { adminToken, type Answered, type Harness, startService } from "./harness.ts"
import { eventually } from "./receiver.ts"

const admin = `admin:${adminToken}`
let service: Harness
let alice: string
let mordred: string
let password: string

const send: Harness["send"] = (...request) => service.send(...request)

const notification = (url: string, from = "") =>
  `<notification><item><description>d</description><url>${url}</url>${from}</item></notification>`

const good = "http://good.example/"

/** A deposit at a node, from an address of the documentation networks. */
const deposit = (
  address: string,
  options: { readonly basic?: string; readonly body?: string; readonly node?: number } = {}
): Promise<Answered> => {
  const { basic, body = notification(`${good}${Math.random()}`), node = 0 } = options
  const headers = { "X-Forwarded-For": address }
  return send("POST", `${service.nodes[node] ?? ""}/mailboxes/alice`, {
    body,
    headers,
    ...basic === undefined ? {} : { basic }
  })
}

const newAccount = async (name: string): Promise<string> => {
  const body = `<account><name>${name}</name></account>`
  const created = await send("POST", "/accounts", { basic: admin, body })
  return `${name}:${created.child("token")}`
}

let records: Service["records"]

/** The removals of records of reports. */
const reportRemovals: Array<RecordChange> = []

const spied = (one: Service): Service => {
  records = one.records
  const write: Service["records"]["write"] = (changes) => {
    const removals = changes.filter(({ table, value }) =>
      table.startsWith("report") && value === null
    )
    reportRemovals.push(...removals)
    return one.records.write(changes)
  }
  return { ...one, records: { ...one.records, write } }
}

beforeAll(async () => {
  service = await startService((one) => resourceTable(spied(one)), {
    trustedProxies: ["127.0.0.0/8"]
  })
  alice = await newAccount("alice")
  mordred = await newAccount("mordred")
  const opened = await send("POST", "/mailboxes", { basic: alice, headers: { Slug: "alice" } })
  password = opened.child("password") ?? ""
})
afterAll(() => service.close())

const block = (path: string, basic: string, fields: Readonly<Record<string, string>>) => {
  const body = Object.entries(fields).map(([name, value]) => `<${name}>${value}</${name}>`)
  return send("POST", path, { basic, body: `<block>${body.join("")}</block>` })
}

describe("an owner", () => {
  const blocks = "/mailboxes/alice/blocks"

  it.each(["%C4%8A", "UPPER", "alice~secret"])(
    "finds no blocks of the mailbox %s",
    async (name) => {
      const path = `/mailboxes/${name}/blocks`
      expect((await send("GET", path, { basic: alice })).status).toBe(404)
      expect((await send("DELETE", `${path}/b1`, { basic: alice })).status).toBe(404)
      expect((await block(path, alice, { account: "mordred" })).status).toBe(404)
    }
  )

  it("blocks an account, a network and a host for its mailbox, and lifts each", async () => {
    const cases = [
      [{ account: "mordred" }, () => deposit("192.0.2.1", { basic: mordred })],
      [{ network: "203.0.113.7" }, () => deposit("203.0.113.200")],
      [
        { host: "https://spam.example/page" },
        () => deposit("192.0.2.2", { body: notification("https://www.spam.example/1") })
      ]
    ] as const
    for (const [fields, refused] of cases) {
      expect((await refused()).status).toBe(202)
      const made = await block(blocks, alice, { ...fields, expires: "P7D", reason: "spam" })
      expect([made.status, made.text]).toEqual([201, expect.stringContaining("<expires>")])
      const answer = await refused()
      expect(answer.status).toBe(403)
      expect(answer.child("type")).toBe(`${service.base}/problems/blocked`)
      expect(answer.child("detail")).toMatch(/^the owner of this mailbox has blocked .* until 20/)
      expect((await deposit("198.51.100.1")).status).toBe(202)
      expect((await deposit("198.51.100.1", { basic: alice })).status).toBe(202)
      const uri = made.header("location")
      const listed = await send("GET", blocks, { basic: alice })
      expect(childrenOf(listed.xml, "block").map(({ attributes }) => attributes["href"]))
        .toEqual([uri])
      expect((await send("GET", uri, { basic: alice })).status).toBe(200)
      expect((await send("DELETE", uri, { basic: alice })).status).toBe(204)
      expect((await send("DELETE", uri, { basic: alice })).status).toBe(404)
      expect((await refused()).status).toBe(202)
    }
  })

  it.each([
    ["http:///spam.example/x", "spam.example"],
    ["//spam.example/x", "spam.example"],
    ["http://spam%2Eexample/x", "spam.example"],
    ["http://a@b@spam.example/", "spam.example"],
    ["http://127.1/x", "0x7f000001"]
  ])("blocks a host in each spelling: %s", async (uri, host) => {
    const refused = () => deposit("192.0.2.3", { body: notification(uri) })
    const click = () =>
      send("POST", "/mailboxes/alice", {
        body: "hi",
        type: "text/plain",
        headers: { Click: new URL(uri, "https://base.example").href }
      })
    const stored = await refused()
    expect(stored.status).toBe(202)
    const depositor = `${stored.header("location")}/depositor`
    const shown = await send("GET", depositor, { basic: alice })
    expect(childrenOf(shown.xml, "host").map(({ children }) => children.join("")))
      .toEqual([host.startsWith("0x") ? "127.0.0.1" : host])
    const made = await block(blocks, alice, { host })
    expect(made.status).toBe(201)
    expect((await refused()).status).toBe(403)
    expect((await click()).status).toBe(403)
    expect((await send("DELETE", made.header("location"), { basic: alice })).status).toBe(204)
    expect((await click()).status).toBe(202)
  })

  it("blocks what comes by a relay of this service, too", async () => {
    await block(blocks, alice, { account: "mordred" })
    const to = `<to>${service.base}/mailboxes/alice</to>`
    const body = notification(`${good}relay`).replace("<item>", `${to}<item>`)
    const sent = await send("POST", "/outgoing/mordred", { basic: mordred, body })
    const problem = await eventually("the relay ends", async () => {
      const shown = await send("GET", sent.header("location"), { basic: mordred })
      return /the owner of the mailbox has blocked the sender/.exec(shown.text)?.[0]
    })
    expect(problem).toBeDefined()
    const [first] = childrenOf((await send("GET", blocks, { basic: alice })).xml, "block")
    await send("POST", first?.attributes["href"] ?? "", {
      basic: alice,
      type: "application/x-www-form-urlencoded",
      body: "method=delete"
    })
    expect((await deposit("192.0.2.1", { basic: mordred })).status).toBe(202)
  })

  it("is the only one who sees and changes its blocks", async () => {
    for (const basic of [mordred, admin]) {
      expect((await send("GET", blocks, { basic })).status).toBe(403)
      expect((await block(blocks, basic, { account: "alice" })).status).toBe(403)
    }
    expect((await send("GET", blocks)).status).toBe(401)
    expect((await send("GET", "/blocks", { basic: alice })).status).toBe(403)
  })

  it("gets 422 for what is nobody", async () => {
    const invalid = [{}, { account: "A B" }, { network: "10.0.0" }, { network: "10.0.0.0/33" }, {
      host: "a b"
    }, {
      account: "mordred",
      network: "10.0.0.1"
    }, { account: "mordred", expires: "yesterday" }]
    for (const fields of invalid) {
      expect((await block(blocks, alice, fields)).status).toBe(422)
    }
  })
})

describe("an admin", () => {
  it("blocks for the whole service, on every node, and the audit log has it", async () => {
    const made = await block("/blocks", admin, { network: "203.0.113.0/24", expires: "PT1H" })
    expect(made.status).toBe(201)
    for (const [node] of service.nodes.entries()) {
      const answer = await eventually("the node refuses", async () => {
        const sent = await deposit("203.0.113.9", { node })
        return sent.status === 403 ? sent : undefined
      })
      expect(answer.child("detail"))
        .toMatch(/^the operator of this service has blocked .*203\.0\.113\.0\/24 until 20/)
      expect((await deposit("203.0.114.9", { node })).status).toBe(202)
    }
    await block("/blocks", admin, { account: "mordred", reason: "threats" })
    const refusedAll = await eventually("every node refuses", async () => {
      const sent = await Promise.all(
        service.nodes.map((_, node) => deposit("192.0.2.1", { basic: mordred, node }))
      )
      return sent.every(({ status }) => status === 403) ? true : undefined
    })
    expect(refusedAll).toBe(true)
    const body = notification(good).replace("<item>", "<to>http://a.example/</to><item>")
    expect((await send("POST", "/outgoing/mordred", { basic: mordred, body })).status).toBe(403)
    const listed = await send("GET", "/blocks", { basic: admin })
    const hrefs = childrenOf(listed.xml, "block").map(({ attributes }) => attributes["href"] ?? "")
    expect(hrefs).toHaveLength(2)
    for (const href of hrefs) {
      expect((await send("DELETE", href, { basic: admin })).status).toBe(204)
    }
    const taken = await eventually("it is taken again", async () => {
      const { status } = await deposit("192.0.2.1", { basic: mordred })
      return status === 202 ? true : undefined
    })
    expect(taken).toBe(true)
    const { text } = await send("GET", "/audit?target=/blocks", { basic: admin })
    expect(text).toContain("account mordred")
    expect(text.match(/action="block.create"/g)).toHaveLength(2)
    expect(text.match(/action="block.remove"/g)).toHaveLength(2)
  })
})

/** Deposits that the service has read, or has published content of, when it finds the block. */
describe("a block of the sender's host", () => {
  const from = "<from>http://sender.example/1</from>"

  it("refuses what has a password or content, and keeps no content", async () => {
    const made = await block("/blocks", admin, { host: "sender.example" })
    const contents = async () => (await send("GET", "/content", { basic: admin })).text
    const before = await contents()
    const withPassword = notification(good, `<password>secret</password>${from}`)
    const inlining = `<notification><item><description>d</description>` +
      `<content type="text/plain">threat</content>${from}</item></notification>`
    const refused = await eventually("the service refuses", async () => {
      const sent = await deposit("192.0.2.3", { body: withPassword })
      return sent.status === 403 ? sent : undefined
    })
    expect(refused.child("type")).toBe(`${service.base}/problems/blocked`)
    expect(refused.text).not.toContain("secret")
    for (const basic of [undefined, mordred]) {
      const options = basic === undefined ? {} : { basic }
      expect((await deposit("192.0.2.3", { body: withPassword, ...options })).status).toBe(403)
      expect((await deposit("192.0.2.3", { body: inlining, ...options })).status).toBe(403)
    }
    expect(await contents()).toBe(before)
    await send("DELETE", made.header("location"), { basic: admin })
    const taken = await eventually("it is taken again", async () => {
      const { status } = await deposit("192.0.2.3", { body: withPassword })
      return status === 202 ? true : undefined
    })
    expect(taken).toBe(true)
  })
})

describe("a report", () => {
  it("of any reader reaches the admins, with the depositor's network and no address", async () => {
    const stored = await deposit("203.0.113.77", { body: notification("http://evil.example/x") })
    const uri = stored.header("location")
    const report = (basic: string | undefined, reason: string) =>
      send("POST", `${uri}/report`, {
        body: `<report><reason>${reason}</reason></report>`,
        ...basic === undefined ? {} : { basic }
      })
    expect((await report(undefined, "spam")).status).toBe(401)
    expect((await report(mordred, "spam")).status).toBe(403)
    expect((await report(alice, "")).status).toBe(422)
    expect((await report(alice, "x".repeat(1_001))).status).toBe(422)
    expect((await report(`any:${password}`, "it is a threat")).status).toBe(202)
    expect((await report(alice, "it is a threat, again")).status).toBe(202)
    expect((await send("GET", "/reports", { basic: alice })).status).toBe(403)
    const reports = childrenOf((await send("GET", "/reports", { basic: admin })).xml, "report")
    expect(reports.map(({ attributes }) => attributes["notification"])).toEqual([uri])
    const href = reports[0]?.attributes["href"] ?? ""
    const { text: page } = await send("GET", "/reports", { basic: admin, accept: "text/html" })
    const { pathname } = new URL(href)
    expect(page).toMatch(new RegExp(`<a href="${pathname}"><time datetime="[^"]+">`))
    expect(page).toContain("it is a threat <span class=\"quiet\">in the mailbox <a href=")
    const shown = await send("GET", href, { basic: admin })
    expect(shown.text).toContain("<reason>it is a threat</reason>")
    expect(shown.child("network")).toBe("203.0.113.0/24")
    expect(shown.child("host")).toBe("evil.example")
    expect(shown.text).not.toContain("203.0.113.77")
    // Whoever has no right gets that answer, whatever the form has.
    const form = { body: "method=unknown", type: "application/x-www-form-urlencoded" }
    expect((await send("POST", href, form)).status).toBe(401)
    expect((await send("POST", href, { ...form, basic: alice })).status).toBe(403)
    expect((await send("POST", href, { ...form, basic: admin })).status).toBe(422)
    expect((await send("DELETE", href, { basic: admin })).status).toBe(204)
    expect((await send("GET", href, { basic: admin })).status).toBe(404)
    expect((await report(alice, "once more")).status).toBe(202)
  })

  it("names a bounded number of hosts", async () => {
    const clicks = Array.from(
      { length: 3 * reportHostsMax },
      (_, n) => `<click>http://h${n}.example</click>`
    )
    const body = notification("http://evil.example/y").replace(
      "</item>",
      `${clicks.join("")}</item>`
    )
    const uri = (await deposit("203.0.113.78", { body })).header("location")
    const reason = "<report><reason>too many</reason></report>"
    expect((await send("POST", `${uri}/report`, { basic: alice, body: reason })).status).toBe(202)
    const reports = childrenOf((await send("GET", "/reports", { basic: admin })).xml, "report")
    const { xml } = await send("GET", reports[0]?.attributes["href"] ?? "", { basic: admin })
    expect(childrenOf(xml, "host")).toHaveLength(reportHostsMax)
  })

  it("leaves no marker for ever, and an id that came back hides no report", async () => {
    const uri = (await deposit("198.51.100.9")).header("location")
    const report = () =>
      send("POST", `${uri}/report`, {
        basic: alice,
        body: "<report><reason>spam</reason></report>"
      })
    const listed = async () => {
      const { xml } = await send("GET", "/reports", { basic: admin })
      return childrenOf(xml, "report").find(({ attributes }) => attributes["notification"] === uri)
        ?.attributes["href"]
    }
    expect((await report()).status).toBe(202)
    const href = await listed() ?? ""
    expect((await send("DELETE", href, { basic: admin })).status).toBe(204)
    expect(reportRemovals.length).toBeGreaterThanOrEqual(2)
    for (const { markerExpires } of reportRemovals) expect(markerExpires).toBe(true)
    // On NATS a server that was killed may bring back the id of a report, and not the report.
    const key = decodeURIComponent(href.slice(href.lastIndexOf("/") + 1))
    const id = key.slice(key.indexOf(".") + 1)
    await Effect.runPromise(records.write([{ table: "report-ids", key: id, value: key }]))
    expect((await report()).status).toBe(202)
    expect(await listed()).toBeDefined()
  })

  it("is refused after many of one account", async () => {
    const { status, text } = await eventually("it is too often", async () => {
      const uri = (await deposit("198.51.100.3")).header("location")
      const body = "<report><reason>spam</reason></report>"
      const node = service.nodes[0] ?? ""
      const sent = await send("POST", `${node}${new URL(uri).pathname}/report`, {
        basic: alice,
        body
      })
      return sent.status === 202 ? undefined : sent
    })
    expect([status, text]).toEqual([429, expect.stringContaining("the account alice may send 20")])
  })
})

describe("the depositor of a notification", () => {
  it("is for the owner and admins only: the account, or the network", async () => {
    const byAccount = (await deposit("192.0.2.9", { basic: mordred })).header("location")
    const anonymous = (await deposit("2001:db8:1:2::7")).header("location")
    for (const basic of [alice, admin]) {
      const known = await send("GET", `${byAccount}/depositor`, { basic })
      expect(known.child("account")).toBe("mordred")
      expect(known.text).not.toContain("192.0.2.")
      const { xml } = await send("GET", `${anonymous}/depositor`, { basic })
      expect(childOf(xml, "network")?.children).toEqual(["2001:db8:1::/48"])
    }
    expect((await send("GET", `${byAccount}/depositor`)).status).toBe(401)
    expect((await send("GET", `${byAccount}/depositor`, { basic: mordred })).status).toBe(403)
    const shared = await send("GET", byAccount, { basic: `any:${password}` })
    expect(shared.status).toBe(200)
    expect(shared.text).not.toContain("mordred")
    expect((await send("GET", anonymous, { basic: alice })).text).not.toContain("2001:db8")
  })
})
