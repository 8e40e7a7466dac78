/** `/cluster/actors`: what an actor has in memory or in the store (protocol §6). */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { childOf, childrenOf, type Element, writeElement } from "../../http/formats/xml/index.ts"
import { actorView } from "../../http/resources/cluster/actor-views.ts"
import { shownItem, shownJson } from "../../http/resources/cluster/shown-fields.ts"
import { resourceTable } from "../../http/resource-table.ts"
import { address, shardOf } from "../../runtime/index.ts"
import { adminToken, type Harness, startService } from "./harness.ts"
import { nodeOf, quarantineMailbox } from "./quarantined-actor.ts"

const basic = `admin:${adminToken}`

let service: Harness

/** The secret part of the mailbox's URI. */
let secret: string

const send: Harness["send"] = (...request) => service.send(...request)

beforeAll(async () => {
  service = await startService(resourceTable)
  const opened = await send("POST", "/mailboxes", { basic, headers: { Slug: "box" } })
  expect(opened.status).toBe(201)
  secret = /~([\w-]+)/.exec(opened.text)?.[1] ?? ""
  expect(secret).not.toBe("")
  const description = "<description>&lt;script&gt;hello</description>"
  const item = `<item><url>http://a.test/</url>${description}</item>`
  expect(
    (await send("POST", "/mailboxes/box", { body: `<notification>${item}</notification>` })).status
  ).toBe(202)
})
afterAll(() => service.close())

const path = "/cluster/actors/mailbox/box"

/** The kinds, and whether all of their text but secrets is shown. */
const allKinds: Readonly<Record<string, boolean>> = {
  account: true,
  audit: true,
  "background-task": false,
  cabinet: false,
  content: false,
  idempotency: false,
  mailbox: false,
  notification: false,
  "outgoing-mailbox": false,
  readiness: true,
  registration: false,
  session: true,
  throttle: false
}

const uriOf = (path: string): string => `https://hooks.example/${path}?token=x`

const itemsOf = (actor: Element): ReadonlyArray<string> => {
  const items = childOf(actor, "items")
  return items === undefined
    ? []
    : childrenOf(items, "item").map(({ children }) => children.join(""))
}

describe("the inspector", () => {
  it("is for admins only, and knows the kinds of actors", async () => {
    const body = "<account><name>nobody</name></account>"
    const created = await send("POST", "/accounts", { basic, body })
    const nobody = `nobody:${created.child("token")}`
    for (const target of ["/cluster/actors/mailbox", path]) {
      expect((await send("GET", target)).status).toBe(401)
      expect((await send("GET", target, { basic: nobody })).status).toBe(403)
    }
    for (const tail of ["nothing", "nothing/x", "mailbox/none", "mailbox/a.b", "__proto__/x"]) {
      expect([tail, (await send("GET", `/cluster/actors/${tail}`, { basic })).status])
        .toEqual([tail, 404])
    }
  })

  it("lists the actors of a kind in pages", async () => {
    const names = ["list-a", "list-b"]
    for (const Slug of names) await send("POST", "/mailboxes", { basic, headers: { Slug } })
    const found: Array<string> = []
    let next: string | undefined = "/cluster/actors/mailbox?limit=1"
    while (next !== undefined) {
      const page = await send("GET", next, { basic })
      found.push(...childrenOf(page.xml, "actor").map(({ attributes }) => attributes["id"] ?? ""))
      const link = page.headers.get("link") ?? ""
      next = /<([^>]+)>; rel="?next/.exec(link)?.[1]?.replace(service.base, "")
    }
    expect(found).toEqual(found.toSorted())
    expect(found).toEqual(expect.arrayContaining(["box", ...names]))
    const page = await send("GET", "/cluster/actors/mailbox", { basic, accept: "text/html" })
    expect(page.text).toContain(`href="${path}"`)
    const cluster = await send("GET", "/cluster", { basic, accept: "text/html" })
    expect(cluster.text).toContain("href=\"/cluster/actors/mailbox\"")
  })

  it("opens an actor by its id, which a form of the list asks for", async () => {
    const list = "/cluster/actors/mailbox"
    const page = await send("GET", list, { basic, accept: "text/html" })
    expect(page.text).toContain(`action="${list}" method="get"`)
    expect(page.text).toContain("name=\"id\"")
    const found = await send("GET", `${list}?id=+box+`, { basic, accept: "text/html" })
    expect([found.status, found.header("location")]).toEqual([303, service.base + path])
    for (const id of ["a.b", "", "%2Fx", "y".repeat(201)]) {
      const refused = await send("GET", `${list}?id=${id}`, { basic })
      expect([id, refused.status]).toEqual([id, 400])
      expect(refused.child("detail")).toContain("id is no id of an actor")
    }
    expect((await send("GET", "/cluster/actors/nothing?id=box", { basic })).status).toBe(404)
    expect((await send("GET", `${list}?id=box`)).status).toBe(401)
  })

  it("shows state, log, node and shard, without secrets and without text of others", async () => {
    const { text, xml } = await send("GET", path, { basic })
    const of = address("mailbox", "box")
    expect(xml.attributes).toMatchObject({
      href: service.base + path,
      kind: "mailbox",
      id: "box",
      shard: String(shardOf(of)),
      node: nodeOf(service, of).system.cluster().self,
      loaded: "true",
      queued: "0",
      restarts: "0"
    })
    const state = childOf(xml, "state")?.children.join("") ?? ""
    expect(JSON.parse(state)).toMatchObject({ _tag: "Open", passwordHash: "not shown" })
    expect(itemsOf(xml)).toEqual([
      expect.stringMatching(/^a notification of 20\d\d-.+Z: not shown, \d{3} characters$/)
    ])
    expect(text).not.toContain(secret)
    expect(text).not.toContain("hello")
    expect(text).not.toContain("a.test")
    const json = await send("GET", path, { basic, accept: "application/json" })
    expect(JSON.parse(json.text)).toMatchObject({ kind: "mailbox", id: "box", state })
    const page = await send("GET", path, { basic, accept: "text/html" })
    expect(page.text).toContain("<h2>State</h2>")
    expect(page.text).not.toContain("hello")
    expect(page.text).not.toContain(secret)
  })

  it("shows the newest items of a log, however large they are", async () => {
    await send("POST", "/mailboxes", { basic, headers: { Slug: "large" } })
    for (let at = 0; at < 25; at++) {
      const field = `<note>${"y".repeat(9_000)}</note>`
      const item = `<item><url>http://a.test/</url><description>${at}</description>${field}</item>`
      const body = `<notification>${item}</notification>`
      expect((await send("POST", "/mailboxes/large", { body })).status).toBe(202)
    }
    const { xml } = await send("GET", "/cluster/actors/mailbox/large", { basic })
    const items = childrenOf(childOf(xml, "items") ?? xml, "item")
    expect(items.map(({ attributes }) => attributes["n"]))
      .toEqual(Array.from({ length: 20 }, (_, at) => String(at + 6)))
    for (const text of itemsOf(xml)) expect(text).toMatch(/: not shown, 9\d{3} characters$/)
  })

  it("shows nothing that users wrote, of any kind that may have it", async () => {
    const mark = "of-a-user"
    const blocks = { id: "b".repeat(22), kind: "host", value: `${mark}.example`, reason: mark }
    const values = [
      `<notification><item><description>${mark}</description></item></notification>`,
      JSON.stringify(mark),
      JSON.stringify({ _tag: "Registered", status: "active", tries: 3, callback: uriOf(mark) }),
      JSON.stringify({ status: "failed", code: 404, to: uriOf(mark), problem: mark }),
      JSON.stringify({ settings: { title: mark, deposit: "anyone", webhook: { url: mark } } }),
      JSON.stringify({ body: { type: `text/${mark}`, disposition: mark, lengthBytes: 7 } }),
      JSON.stringify({ blocks: [blocks], exchange: { requestHeaders: [["X", mark]] } }),
      JSON.stringify({ [`<${mark}>`]: 1, query: { contains: mark } }),
      JSON.stringify({ aFieldOfLater: mark, lists: [[mark], { name: mark }] })
    ]
    for (const [kind, isOpen] of Object.entries(allKinds)) {
      for (const value of isOpen ? values.slice(1, 4) : values) {
        for (const text of [shownJson(kind, value, 2), shownItem(kind, { n: 1, value })]) {
          expect([kind, value, text?.includes(mark) === true]).toEqual([kind, value, isOpen])
        }
      }
    }
    const shown = shownJson("registration", values[2] ?? "", 0) ?? ""
    expect(JSON.parse(shown)).toEqual({
      _tag: "Registered",
      status: "active",
      tries: 3,
      callback: "https://hooks.example, the rest of 39 characters not shown"
    })
    expect(shownItem("notification", { n: 1, value: values[0] ?? "" }))
      .toBe(`not shown, ${values[0]?.length} characters`)
  })

  it("says how to record messages and commits where it does not", async () => {
    const advice = "This node records neither messages nor commits: set INSPECTOR=on"
    for (const target of [path, "/cluster/messages"]) {
      expect((await send("GET", target, { basic, accept: "text/html" })).text).toContain(advice)
    }
    const { xml } = await send("GET", "/cluster/messages", { basic })
    expect([xml.attributes["recording"], xml.children]).toEqual(["off", []])
    expect(childOf((await send("GET", path, { basic })).xml, "commits")).toBeUndefined()
    const named = await send("GET", `${path}?commit=node-0.test.1`, { basic })
    expect(named.status).toBe(404)
  })

  it("knows each kind of actors", async () => {
    const kinds = [...service.service.system.snapshot().activations.keys()]
    expect(kinds.toSorted()).toEqual(Object.keys(allKinds).toSorted())
  })

  it("shows no answer of a receiver, which not every admin may see", () => {
    const value = JSON.stringify({ exchange: { code: 500, answer: { text: "inside" } } })
    const { body, tree } = actorView(service.service, {
      address: address("registration", "box=x"),
      node: "a",
      inspection: { head: 1, isLoaded: true, queued: 0, restarts: 0, state: "{}", stateChars: 2 },
      log: [{ n: 1, value }]
    })
    const shown = [
      typeof body === "function" ? body().text : "",
      typeof tree === "function" ? writeElement(tree()) : ""
    ]
    for (const text of shown) {
      expect(text).toContain("500")
      expect(text).not.toContain("inside")
    }
  })

  it("shows which kinds of messages wait, and since when", () => {
    const { body, tree } = actorView(service.service, {
      address: address("mailbox", "busy"),
      node: "a",
      inspection: {
        head: 0,
        isLoaded: true,
        queued: 3,
        restarts: 0,
        oldestMs: Date.parse("2026-03-01T12:00:00Z"),
        waiting: [{ message: "Deposit", count: 2 }, { message: "Describe", count: 1 }]
      },
      log: []
    })
    const page = typeof body === "function" ? body().text : ""
    expect(page).toContain("3 (2 Deposit, 1 Describe), the oldest since <time")
    const document = typeof tree === "function" ? tree() : tree
    if (document === undefined) throw new Error("the view has no document")
    expect(document.attributes).toMatchObject({
      queued: "3",
      "queued-since": "2026-03-01T12:00:00.000Z"
    })
    expect(childrenOf(childOf(document, "waiting") ?? document, "message")).toMatchObject([
      { attributes: { name: "Deposit", count: "2" } },
      { attributes: { name: "Describe", count: "1" } }
    ])
  })

  it("shows the last fault that a node of an earlier version reports, without its time", () => {
    const { body, tree } = actorView(service.service, {
      address: address("mailbox", "broken"),
      node: "a",
      inspection: {
        head: 0,
        isLoaded: false,
        queued: 0,
        restarts: 1,
        fault: "TypeError at x.ts:1"
      },
      log: []
    })
    const page = typeof body === "function" ? body().text : ""
    expect(page).toContain("<dt>Last fault</dt><dd>TypeError at x.ts:1\n<br>")
    const document = typeof tree === "function" ? tree() : tree
    expect(document?.attributes).toMatchObject({ fault: "TypeError at x.ts:1" })
    expect(document?.attributes).not.toHaveProperty("fault-at")
  })

  it("is recorded in the audit log", async () => {
    await send("GET", path, { basic })
    const { text } = await send("GET", "/audit?action=actor.inspect", { basic })
    expect(text).toContain("actor.inspect")
    expect(text).toContain(path)
  })

  it("shows an actor in quarantine, its last fault, and a button that lifts it", async () => {
    await send("POST", "/mailboxes", { basic, headers: { Slug: "broken" } })
    const of = await quarantineMailbox(service, "broken")
    const target = `/cluster/actors/${of.kind}/${of.id}`
    const { xml } = await send("GET", target, { basic })
    expect(xml.attributes).toMatchObject({ loaded: "false" })
    expect(xml.attributes["fault"]).toMatch(/^TypeError at /)
    expect(Date.parse(xml.attributes["fault-at"] ?? "")).toBeLessThanOrEqual(Date.now())
    expect(Date.parse(xml.attributes["quarantined-until"] ?? "")).toBeGreaterThan(Date.now())
    const page = await send("GET", target, { basic, accept: "text/html" })
    expect(page.text).toContain(`action="/cluster/quarantine/${of.kind}/${of.id}"`)
    await send("DELETE", `/cluster/quarantine/${of.kind}/${of.id}`, { basic })
    const after = await send("GET", target, { basic })
    expect(after.xml.attributes).not.toHaveProperty("quarantined-until")
    // The fault is known for longer.
    expect(after.xml.attributes).toMatchObject({ fault: xml.attributes["fault"] })
    const later = await send("GET", target, { basic, accept: "text/html" })
    expect(later.text).toContain("The node forgets it when it restarts.")
  })
})
