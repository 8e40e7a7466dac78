/** The collection of cabinets (protocol §1.5): creation and listing. */
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { cabinetMailboxesMax } from "../../actors/limits.ts"
import { childOf, childrenOf } from "../../http/formats/xml/index.ts"
import { containsCharsMax, titleCharsMax } from "../../http/limits.ts"
import { cabinetOf, type Cabinets, owner, rightsIn, startCabinets } from "./cabinets-harness.ts"

let service: Cabinets
let shared: string

const send: Cabinets["send"] = (...request) => service.send(...request)
const form = "application/x-www-form-urlencoded"

beforeAll(async () => {
  service = await startCabinets()
  shared = await service.open("news")
  await service.open("mail")
})
afterAll(() => service.close())

const query = "<query contains=\"Grail\" since=\"2020-01-01T00:00:00Z\"/>"

describe("POST /cabinets", () => {
  test("201, Location and the document, in XML, JSON and as a form", async () => {
    const body = cabinetOf(
      [`${service.base}/mailboxes/news`, "/mailboxes/mail"],
      `<title>All &amp; some</title>${query}`
    )
    const xml = await send("POST", "/cabinets", { basic: owner, body })
    expect(xml.status).toBe(201)
    const href = xml.header("location")
    expect(href).toMatch(new RegExp(`^${service.base}/cabinets/[A-Za-z0-9_-]{22}$`))
    expect(xml.xml.name).toBe("cabinet")
    expect(xml.xml.attributes["href"]).toBe(href)
    expect(xml.child("title")).toBe("All & some")
    expect(childrenOf(xml.xml, "mailbox").map(({ attributes }) => attributes["href"]))
      .toEqual([`${service.base}/mailboxes/news`, `${service.base}/mailboxes/mail`])
    expect({ ...childOf(xml.xml, "query")?.attributes })
      .toEqual({ contains: "Grail", since: "2020-01-01T00:00:00Z" })
    const json = await send("POST", "/cabinets", {
      basic: owner,
      type: "application/json",
      accept: "application/json",
      body: JSON.stringify({
        title: "J",
        mailbox: [{ href: "/mailboxes/news" }],
        query: { contains: "x" }
      })
    })
    expect(json.status).toBe(201)
    expect(json.json).toEqual({
      href: json.header("location"),
      title: "J",
      mailbox: [{ href: `${service.base}/mailboxes/news` }],
      query: { contains: "x" }
    })
    const lines = encodeURIComponent("/mailboxes/news\r\n/mailboxes/mail\n")
    const fields = await send("POST", "/cabinets", {
      basic: owner,
      type: form,
      accept: "text/html",
      body: `title=F&mailbox=${lines}&contains=&since=`
    })
    expect(fields.status).toBe(201)
    expect(fields.text).toContain(`${service.base}/mailboxes/mail`)
    const page = await service.read(fields.header("location"))
    expect(rightsIn(page)).toEqual(["news true", "mail true"])
    expect(childOf(page.xml, "query")).toBeUndefined()
  })

  test("the same Idempotency-Key makes one", async () => {
    const keyed = {
      basic: owner,
      body: cabinetOf(["/mailboxes/news"]),
      headers: { "Idempotency-Key": "\"once\"" }
    }
    const first = await send("POST", "/cabinets", keyed)
    const second = await send("POST", "/cabinets", keyed)
    expect(second.header("location")).toBe(first.header("location"))
  })

  test("a mailbox named twice is listed once; its secret is not shown", async () => {
    const href = await service.make(["/mailboxes/news", shared, "/mailboxes/news"])
    const shown = await service.read(href)
    expect(rightsIn(shown)).toEqual(["news true"])
    expect(shown.text).not.toContain("~news")
    expect(shown.text).not.toContain(shared.split("~")[1] ?? "none")
  })

  test("401 without an account", async () => {
    const body = cabinetOf(["/mailboxes/news"])
    for (const options of [{}, { basic: "admin:wrong" }]) {
      const refused = await send("POST", "/cabinets", { body, ...options })
      expect(refused.status).toBe(401)
      expect(refused.header("www-authenticate")).toContain("Basic realm=\"restante\"")
    }
  })

  const bad: ReadonlyArray<readonly [string, string, string]> = [
    ["no mailbox", "<cabinet/>", "one mailbox or more"],
    [
      "an href of others",
      cabinetOf(["/mailboxes/a", "http://example.org/mailboxes/b"]),
      "mailbox 2 must be the URI of a mailbox of this service: not http://example.org/mailboxes/b"
    ],
    ["no href", "<cabinet><mailbox/></cabinet>", "mailbox 1"],
    ["another resource", cabinetOf(["/content/abc"]), "not /content/abc"],
    ["a protocol-relative href", cabinetOf(["//example.org/mailboxes/a"]), "mailbox 1"],
    ["a name that is none", cabinetOf(["/mailboxes/No"]), "not /mailboxes/No"],
    ["what is below a mailbox", cabinetOf(["/mailboxes/a/registrations"]), "mailbox 1"],
    ["a javascript href", cabinetOf(["javascript:alert(1)"]), "mailbox 1"],
    ["too long an href", cabinetOf([`/mailboxes/${"a".repeat(3_000)}`]), "too long"],
    [
      "too many",
      cabinetOf(Array.from({ length: cabinetMailboxesMax + 1 }, (_, at) => `/mailboxes/m${at}`)),
      "100 mailboxes at the most"
    ],
    [
      "too long a title",
      cabinetOf(["/mailboxes/a"], `<title>${"t".repeat(titleCharsMax + 1)}</title>`),
      "title"
    ],
    [
      "a long text",
      cabinetOf(["/mailboxes/a"], `<query contains="${"c".repeat(containsCharsMax + 1)}"/>`),
      "contains"
    ],
    ["no time", cabinetOf(["/mailboxes/a"], "<query since=\"yesterday\"/>"), "since"],
    ["another root", "<mailbox/>", "the root element must be cabinet"]
  ]
  test.each(bad)("422 for %s", async (_what, body, detail) => {
    const refused = await send("POST", "/cabinets", { basic: owner, body })
    expect([refused.status, refused.header("content-type")])
      .toEqual([422, "application/problem+xml; charset=utf-8"])
    expect(refused.child("detail")).toContain(detail)
  })

  test("a bad href is named without what could be its secret", async () => {
    const body = cabinetOf(["/mailboxes/news~se cret", "/mailboxes/mail"])
    const refused = await send("POST", "/cabinets", { basic: owner, body })
    expect(refused.status).toBe(422)
    expect(refused.text).not.toContain("cret")
  })

  test("400, 413, 415 for bodies that cannot be read", async () => {
    const post = async (type: string, body: string) =>
      (await send("POST", "/cabinets", { basic: owner, type, body })).status
    expect(await post("application/xml", "<cabinet>")).toBe(400)
    expect(await post("application/xml", "<!DOCTYPE cabinet><cabinet/>")).toBe(400)
    expect(await post("application/json", "[")).toBe(400)
    expect(await post("application/xml", "")).toBe(400)
    expect(await post("application/xml", `<cabinet>${" ".repeat(300_000)}</cabinet>`)).toBe(413)
    expect(await post("image/png", "x")).toBe(415)
    const control = await post(form, "title=%01&mailbox=/mailboxes/news")
    expect(control).toBe(422)
    expect(await post(form, "mailbox=/mailboxes/ne%01ws")).toBe(422)
  })
})

describe("GET /cabinets", () => {
  test("the caller's, newest first, paged; 401 without an account", async () => {
    const hrefs: Array<string> = []
    for (let at = 0; at < 3; at++) {
      hrefs.unshift(await service.make(["/mailboxes/news"], `<title>c${at}</title>`, service.bob))
    }
    const first = await send("GET", "/cabinets?limit=2", { basic: service.bob })
    expect(first.header("cache-control")).toContain("private")
    const next = /<([^>]*)>; rel="next"/.exec(first.header("link"))?.[1] ?? ""
    const second = await send("GET", next, { basic: service.bob })
    const listed = [first, second].flatMap(({ xml }) =>
      childrenOf(xml, "cabinet").map(({ attributes }) => attributes["href"] ?? "")
    )
    expect(listed.toSorted()).toEqual(hrefs.toSorted())
    expect(childrenOf(first.xml, "cabinet")[0]?.attributes).toMatchObject({ mailboxes: "1" })
    const page = await send("GET", "/cabinets", { basic: service.bob, accept: "text/html" })
    expect(page.text).toContain("name=\"mailbox\"")
    expect(page.text).toContain(">c2</a>")
    expect((await send("GET", "/cabinets")).status).toBe(401)
    for (const bad of ["limit=0", "limit=1001", "after=x"]) {
      expect((await send("GET", `/cabinets?${bad}`, { basic: owner })).status).toBe(400)
    }
    await send("DELETE", hrefs[0] ?? "", { basic: service.bob })
    const left = await send("GET", "/cabinets", { basic: service.bob })
    expect(childrenOf(left.xml, "cabinet")).toHaveLength(2)
    const none = await send("GET", "/cabinets", {
      basic: `carol:${await tokenOf("carol")}`,
      accept: "application/json"
    })
    expect(none.json).toEqual({ cabinet: [] })
  })
})

const tokenOf = async (name: string): Promise<string> => {
  const body = `<account><name>${name}</name></account>`
  return (await send("POST", "/accounts", { basic: owner, body })).child("token") ?? ""
}
