/** One cabinet (protocol §1.5): its owner, changes, removal. */
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { childOf } from "../../http/formats/xml/index.ts"
import { cabinetOf, type Cabinets, descriptionsIn, owner, rightsIn,
  startCabinets } from "./cabinets-harness.ts"
import { timeOf } from "./mailbox-harness.ts"

let service: Cabinets
let shared: string

const send: Cabinets["send"] = (...request) => service.send(...request)
const form = "application/x-www-form-urlencoded"
const query = "<query contains=\"Grail\" since=\"2020-01-01T00:00:00Z\"/>"

beforeAll(async () => {
  service = await startCabinets()
  shared = await service.open("news")
  await service.open("mail")
})
afterAll(() => service.close())

describe("/cabinets/<id>", () => {
  test("for its owner alone: 401, 403; 404 for none", async () => {
    const href = await service.make(["/mailboxes/news"], "", service.bob)
    const body = cabinetOf(["/mailboxes/mail"])
    for (const [method, options] of [["GET", {}], ["PUT", { body }], ["POST", { body }]] as const) {
      expect((await send(method, href, options)).status).toBe(401)
      expect((await send(method, href, { ...options, basic: owner })).status).toBe(403)
      for (const none of ["/cabinets/none", `${href}~secret`, "/cabinets/a%20b"]) {
        expect((await send(method, none, { ...options, basic: service.bob })).status).toBe(404)
      }
    }
    expect((await send("DELETE", href)).status).toBe(401)
    const others = await service.make(["/mailboxes/news"])
    expect((await send("DELETE", others, { basic: service.bob })).status).toBe(403)
    expect((await send("DELETE", href, { basic: owner })).status).toBe(204)
    expect((await send("OPTIONS", href)).header("allow"))
      .toBe("GET, HEAD, POST, PUT, DELETE, OPTIONS")
  })

  test("PUT replaces, with If-Match; the document of GET can be PUT", async () => {
    const href = await service.make([shared], "<title>Old</title>", service.bob)
    await service.deposit("news", "before")
    const before = await service.read(href, service.bob)
    expect(rightsIn(before)).toEqual(["news true"])
    for (const accept of ["application/xml", "application/json"]) {
      const read = await send("GET", href, { basic: service.bob, accept })
      const back = await send("PUT", href, {
        basic: service.bob,
        type: accept,
        body: read.text,
        headers: { "If-Match": read.etag }
      })
      expect([back.status, back.child("title")]).toEqual([200, "Old"])
      // The right of the shared URI remains, although the document does not show its secret.
      expect(rightsIn(await service.read(href, service.bob))).toEqual(["news true"])
    }
    const stale = await send("PUT", href, {
      basic: service.bob,
      body: cabinetOf(["/mailboxes/mail"]),
      headers: { "If-Match": "\"other\"" }
    })
    expect(stale.status).toBe(412)
    const none = { "If-None-Match": "*" }
    const taken = await send("PUT", href, { basic: service.bob, body: before.text, headers: none })
    expect(taken.status).toBe(412)
    const put = await send("PUT", href, {
      basic: service.bob,
      body: cabinetOf(["/mailboxes/mail"], query)
    })
    expect([put.status, put.child("title")]).toEqual([200, ""])
    const after = await service.read(href, service.bob)
    expect(rightsIn(after)).toEqual(["mail false"])
    expect(descriptionsIn(after)).toEqual([])
    expect(childOf(after.xml, "query")?.attributes["contains"]).toBe("Grail")
    expect(after.etag).not.toBe(before.etag)
    for (const [body, status] of [["<cabinet/>", 422], ["<cabinet>", 400]] as const) {
      expect((await send("PUT", href, { basic: service.bob, body })).status).toBe(status)
    }
    const formed = { basic: service.bob, type: form, body: "mailbox=/mailboxes/mail" }
    expect((await send("PUT", href, formed)).status).toBe(415)
    expect((await send("PUT", "/cabinets/none", { basic: owner, body: put.text })).status).toBe(404)
  })

  test("the form of its page has the effect of PUT, and redirects (303) to it", async () => {
    const href = await service.make(["/mailboxes/news"])
    const page = await send("GET", href, { basic: owner, accept: "text/html" })
    expect(page.text).toContain(`<textarea id="change-mailbox" name="mailbox"`)
    expect(page.text).toContain(`action="${new URL(href).pathname}"`)
    const body = `title=New&contains=grail&mailbox=${encodeURIComponent("/mailboxes/mail")}`
    const sent = await send("POST", href, { basic: owner, type: form, body })
    expect([sent.status, sent.header("location")]).toEqual([303, href])
    const after = await service.read(href)
    expect([after.xml.attributes["title"], rightsIn(after)]).toEqual(["New", ["mail true"]])
  })

  test("the other form of its page removes it, 303 to the list", async () => {
    const href = await service.make(["/mailboxes/news"])
    const body = "method=delete"
    const others = await send("POST", href, { basic: service.bob, type: form, body })
    expect(others.status).toBe(403)
    const sent = await send("POST", href, { basic: owner, type: form, body })
    expect([sent.status, sent.header("location")]).toEqual([303, new URL("/cabinets", href).href])
    expect((await send("GET", href, { basic: owner })).status).toBe(410)
  })

  test("DELETE: 204, then 410; If-Match; the mailboxes stay", async () => {
    const href = await service.make(["/mailboxes/news"])
    const stale = { basic: owner, headers: { "If-Match": "\"other\"" } }
    expect((await send("DELETE", href, stale)).status).toBe(412)
    const { etag } = await send("GET", href, { basic: owner, accept: "application/atom+xml" })
    const fresh = { basic: owner, headers: { "If-Match": etag } }
    expect((await send("DELETE", href, fresh)).status).toBe(204)
    const body = cabinetOf(["/mailboxes/news"])
    expect((await send("GET", href, { basic: owner })).status).toBe(410)
    expect((await send("PUT", href, { basic: owner, body })).status).toBe(410)
    expect((await send("DELETE", href, { basic: owner })).status).toBe(410)
    const mailbox = await send("GET", "/mailboxes/news", { basic: owner })
    expect([mailbox.status, timeOf(mailbox)]).toEqual([200, expect.any(String)])
  })
})
