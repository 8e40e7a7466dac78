/** The forms of a mailbox's page by which its owner changes its settings and removes it. */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { childrenOf } from "../../http/formats/xml/index.ts"
import { type Mailboxes, owner, startMailboxes } from "./mailbox-harness.ts"

let service: Mailboxes

beforeAll(async () => {
  service = await startMailboxes(undefined, { trustedProxies: ["127.0.0.0/8"] })
})

afterAll(() => service.close())

const open = async (name: string, settings = "") => {
  const { href } = await service.open(name, settings)
  const send = (fields: Readonly<Record<string, string>>, basic = owner) =>
    service.send("POST", `${href}/settings`, {
      basic,
      accept: "text/html",
      type: "application/x-www-form-urlencoded",
      headers: { "Sec-Fetch-Mode": "navigate" },
      body: new URLSearchParams(fields).toString()
    })
  const document = async () => (await service.send("GET", href, { basic: owner })).text
  const page = async () =>
    (await service.send("GET", href, { basic: owner, accept: "text/html" })).text
  return { href, send, document, page }
}

describe("the form of the settings", () => {
  it("shows them, replaces them, and leaves those of webhooks", async () => {
    const { document, href, page, send } = await open(
      "kept",
      "<title>Ops</title><retention>P7D</retention><webhook>github</webhook>"
    )
    const shown = await page()
    expect(shown).toContain("action=\"/mailboxes/kept/settings\"")
    expect(shown).toContain("value=\"P7D\"")
    const fields = { title: "On call", deposit: "accounts", retention: "PT1H", fetch: "eager" }
    const saved = await send({
      method: "put",
      ...fields,
      "fetch-limit": "1000",
      receipts: "received"
    })
    expect([saved.status, saved.header("location")]).toEqual([303, `${href}?read=`])
    const after = await document()
    expect(after).toContain("title=\"On call\"")
    for (
      const one of [
        "<deposit>accounts</deposit>",
        "<retention>PT1H</retention>",
        "<fetch>eager</fetch>",
        "<fetch-limit>1000</fetch-limit>",
        "<receipts>received</receipts>",
        "<webhook>github</webhook>"
      ]
    ) expect(after).toContain(one)
    const again = await page()
    expect(again).toContain("<option value=\"eager\" selected>")
    expect(again).toContain("value=\"1000\"")
    expect((await send({ method: "put", retention: "PT1H" })).status).toBe(303)
    expect(await document()).not.toContain("fetch-limit")
  })

  it("shows a fault beside its field, and changes nothing", async () => {
    const { document, send } = await open("faulty", "<title>Ops</title>")
    const before = await document()
    const ran = await send({ method: "put", title: "Other", retention: "soon" })
    expect(ran.status).toBe(422)
    expect(ran.text).toContain("value=\"soon\"")
    expect(ran.text).toContain("value=\"Other\"")
    expect(ran.text).toContain("class=\"fault\"")
    expect(await document()).toBe(before)
    expect((await send({ method: "patch" })).status).toBe(422)
  })
})

describe("the form that removes a mailbox", () => {
  it("needs the name, and leads to the other mailboxes", async () => {
    const { href, page, send } = await open("doomed")
    expect(await page()).toContain("Remove this mailbox, with all that is in it")
    const unnamed = await send({ method: "delete", name: "" })
    expect(unnamed.status).toBe(422)
    expect(unnamed.text).toContain("Remove the mailbox")
    expect((await send({ method: "delete", name: "doomed2" })).status).toBe(422)
    expect((await service.send("GET", href, { basic: owner })).status).toBe(200)
    const removed = await send({ method: "delete", name: "doomed" })
    expect([removed.status, removed.header("location")]).toEqual([
      303,
      expect.stringMatching(/\/mailboxes$/)
    ])
    expect((await service.send("GET", href, { basic: owner })).status).toBe(410)
    // As its page says.
    const document = "<mailbox><name>doomed</name></mailbox>"
    const reopened = await service.send("POST", "/mailboxes", { basic: owner, body: document })
    expect(reopened.status).toBe(409)
  })

  it("of others is refused, with an entry in the audit log, as DELETE is", async () => {
    const { href, send } = await open("not-mine")
    const { pathname } = new URL(href)
    const refusals = async () => {
      const { xml } = await service.send("GET", "/audit?limit=100", { basic: owner })
      return childrenOf(xml).map(({ attributes }) => attributes)
        .filter(({ target }) => target === pathname)
        .map(({ account, action, outcome }) => [account, action, outcome])
        .filter(([, , outcome]) => outcome === "refused")
    }
    expect((await send({ method: "put", title: "Mine" }, service.bob)).status).toBe(403)
    expect((await send({ method: "delete", name: "not-mine" }, service.bob)).status).toBe(403)
    await expect.poll(refusals).toEqual([["bob", "mailbox.remove", "refused"]])
    // The log has the first refusal of a client.
    const keyed = await service.send("POST", `${href}/settings`, {
      basic: service.bob,
      type: "application/x-www-form-urlencoded",
      headers: { "Idempotency-Key": "\"of another\"", "X-Forwarded-For": "192.0.2.1" },
      body: "method=delete&name=not-mine"
    })
    expect(keyed.status).toBe(403)
    await expect.poll(refusals).toHaveLength(2)
  })

  it("is on no page of readers who are not its owner", async () => {
    const { href, send } = await open("guarded")
    const page = await service.send("GET", href, { accept: "text/html" })
    expect(page.text).not.toContain("/mailboxes/guarded/settings")
    const stranger = await send({ method: "delete", name: "guarded" }, "nobody:wrong")
    expect(stranger.status).toBe(401)
    expect((await service.send("GET", href, { basic: owner })).status).toBe(200)
  })
})
