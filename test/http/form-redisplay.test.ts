/** Rejected forms: the page contains the typed values; programs get the plain problem. */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { resourceTable } from "../../http/resource-table.ts"
import { adminToken, type Harness, startService } from "./harness.ts"

const basic = `admin:${adminToken}`
let service: Harness

beforeAll(async () => {
  service = await startService(resourceTable)
  const body = "<mailbox><name>box</name></mailbox>"
  expect((await service.send("POST", "/mailboxes", { basic, body })).status).toBe(201)
})
afterAll(() => service.close())

type Fields = Readonly<Record<string, string>>

const post = (path: string, fields: Fields, accept: string, as: string | undefined = basic) =>
  service.send("POST", path, {
    ...as === "" ? {} : { basic: as },
    body: new URLSearchParams(fields).toString(),
    type: "application/x-www-form-urlencoded",
    accept
  })

/** In each form that changes something; the search of a problem's page only reads. */
const formSent = "method=\"post\""

const escaped = (text: string): string =>
  text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/"/g, "&quot;")

/** The element of a control, from its tag on. */
const control = (page: string, name: string): string => {
  const [, rest = ""] = page.split(new RegExp(`id="[a-z]+-${name}" name="${name}"`))
  return rest.slice(0, 400)
}

const typed = `<b>"typed" & kept</b>`

describe("a form that is refused", () => {
  it.each<readonly [path: string, wrong: string, status: number, fields: Fields]>([
    ["/mailboxes", "name", 422, { name: "No Name", title: typed }],
    ["/mailboxes", "name", 409, { name: "box", title: typed }],
    ["/mailboxes/box", "description", 422, { description: "", content: typed }],
    ["/mailboxes/box", "content", 422, { description: typed, url: "", content: "" }],
    ["/outgoing/admin", "content", 422, { to: "box", description: typed }],
    ["/outgoing/admin", "to", 422, { to: "No One", description: typed, content: "c" }],
    ["/mailboxes/box/registrations", "callback", 422, { callback: "ftp://typed.test/" }],
    ["/cabinets", "mailbox", 422, { title: typed, mailbox: "http://elsewhere.test/" }],
    ["/customers", "age", 422, { name: typed, age: "old" }],
    ["/quotes", "price", 422, { symbol: "ACME", price: "dear", name: typed }],
    ["/queries", "limit", 422, { on: "customers", title: typed, limit: "many" }],
    ["/queries", "document", 400, { document: `<query on="customers"><any>` }],
    ["/accounts", "name", 422, { name: "No Name" }],
    ["/accounts/admin/token", "name", 422, { name: `typed${"-".repeat(100)}`, expires: "" }]
  ])(
    "%s comes back with its fields, the fault beside %s (%i)",
    async (path, wrong, status, fields) => {
      const page = await post(path, fields, "text/html")
      expect(page.text).not.toContain("A rule of the document is broken")
      expect([page.status, page.header("content-type")]).toEqual([
        status,
        "text/html; charset=utf-8"
      ])
      for (const text of Object.values(fields)) expect(page.text).toContain(escaped(text))
      expect(control(page.text, wrong)).toContain(`aria-invalid="true" autofocus`)
      expect(page.text.match(/aria-invalid/g)).toHaveLength(1)
      const plain = await post(path, fields, "application/xml")
      expect([plain.status, plain.xml.name]).toEqual([status, "problem"])
      expect(plain.text).not.toContain("typed")
    }
  )

  it("names the field by its label, and by its name in the document of the problem", async () => {
    const fields = { name: "labeled", retention: "soon" }
    const page = await post("/mailboxes", fields, "text/html")
    expect(page.text).toContain("✗ “Kept after retrieval for” must be a duration of ISO 8601")
    expect(page.text).not.toContain("retention must be")
    const plain = await post("/mailboxes", fields, "application/xml")
    expect(plain.text).toContain("retention must be a duration of ISO 8601")
  })

  it("comes back without characters that no page may have", async () => {
    const send = (path: string, body: string) =>
      service.send("POST", path, {
        basic,
        body,
        type: "application/x-www-form-urlencoded",
        accept: "text/html"
      })
    const page = await send("/mailboxes", "name=No+Name&title=%00x%1by%EF%BF%BF")
    expect(page.status).toBe(422)
    expect(page.text).toContain("value=\"\ufffdx\ufffdy\ufffd\" id=\"open-title\"")
    const text = await send("/mailboxes/box", "description=&content=a%0D%0Ab%08c")
    expect(text.status).toBe(422)
    expect(control(text.text, "content")).toContain("a\r\nb\ufffdc")
  })

  it("comes back from the path of deposits that need no account, too", async () => {
    const page = await post("/mailboxes/box", { description: "", content: typed }, "text/html", "")
    expect(page.status).toBe(422)
    expect(page.text).toContain(escaped(typed))
  })

  it("comes back at the bridge, with a session and without", async () => {
    const begun = await service.send("POST", "/sessions", { body: "<answer continue=\"true\"/>" })
    const session = new URL(begun.header("location") ?? "").pathname
    const long = `${typed}${"-".repeat(10_000)}`
    const page = await post(`${session}/name`, { answer: long, continue: "true" }, "text/html", "")
    expect(page.status).toBe(422)
    expect(page.text).toContain(`action="${session}/name"`)
    expect(control(page.text, "answer")).toContain(`aria-invalid="true" autofocus`)
    expect(page.text).toContain(`value="${escaped(long)}"`)
    const repeated = await post(
      `${session}/name`,
      { answer: "Robin", continue: "true" },
      "text/html"
    )
    expect([repeated.status, repeated.header("location")]).toEqual([303, service.base + session])

    const asked = `/questions/hard_question?name=Robin&quest=${encodeURIComponent(long)}`
    const refused = await service.send("GET", asked, { accept: "text/html" })
    expect(refused.status).toBe(422)
    expect(refused.text).toContain("action=\"/questions/hard_question\"")
    expect(refused.text).toContain("<input type=\"hidden\" name=\"name\" value=\"Robin\">")
    expect(control(refused.text, "quest")).toContain(`aria-invalid="true" autofocus`)
    expect(refused.text).toContain(`value="${escaped(long)}"`)
    const blank = await service.send("GET", "/questions/quest_question?name=", {
      accept: "text/html"
    })
    expect(blank.status).toBe(400)
    expect(control(blank.text, "name")).toContain("aria-invalid")
  })

  it("does not where the conversation is over", async () => {
    const begun = await service.send("POST", "/sessions", { body: "<answer continue=\"true\"/>" })
    const session = new URL(begun.header("location") ?? "").pathname
    for (const [step, answer] of [["name", "Robin"], ["quest", "x"], ["hard_question", "Oslo"]]) {
      await post(`${session}/${step}`, { answer: String(answer), continue: "true" }, "text/xml")
    }
    const late = { answer: typed, continue: "true" }
    const page = await post(`${session}/name`, late, "text/html")
    expect([page.status, page.text.includes(formSent)]).toEqual([405, false])
  })

  it("comes back when it only asks", async () => {
    const page = await service.send("GET", "/customers?agemin=old&return=name", {
      accept: "text/html"
    })
    expect(page.status).toBe(400)
    expect(control(page.text, "agemin")).toContain("aria-invalid")
    expect(page.text).toMatch(/value="old"[^]*value="name"/)
  })

  it("does not where nothing is, and a document never", async () => {
    const gone = await post("/mailboxes/nobody", { description: typed, content: "c" }, "text/html")
    expect([gone.status, gone.text.includes(formSent)]).toEqual([404, false])
    const body = "<mailbox><name>No Name</name></mailbox>"
    const page = await service.send("POST", "/mailboxes", { basic, body, accept: "text/html" })
    expect([page.status, page.text.includes(formSent)]).toEqual([422, false])
  })
})

describe("the home page", () => {
  const home = async (query: string): Promise<string> =>
    (await service.send("GET", `/${query}`, { accept: "text/html" })).text

  it("has the forms of a named mailbox, and ignores an invalid name", async () => {
    expect(await home("?mailbox=box")).toContain("action=\"/mailboxes/box\"")
    for (const query of ["", "?mailbox=%22%3E%3Cb%3E", "?mailbox=..%2Fx", "?mailbox=%ff"]) {
      const text = await home(query)
      expect(text).not.toContain("action=\"/mailboxes/")
      expect(text).toContain("open or choose one in step 2")
    }
  })

  it("redirects a sent form to the sender's own mailbox, unchanged", async () => {
    const sent = await post("/outgoing", { to: "x" }, "text/html")
    expect([sent.status, sent.header("location")]).toEqual([307, `${service.base}/outgoing/admin`])
    const nobody = await post("/outgoing", { to: "x" }, "text/html", "")
    expect([nobody.status, nobody.text.includes("href=\"/sign-in?return=%2Foutgoing\"")])
      .toEqual([401, true])
  })
})
