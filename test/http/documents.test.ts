/** Documents by their schemas: what a schema does not have is refused, and never ignored. */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { resourceTable } from "../../http/resource-table.ts"
import { adminToken, type Harness, startService } from "./harness.ts"
import { notification } from "./mailbox-harness.ts"

let service: Harness
let registrations: string
let registration: string
let content: string
let tokens: string

const basic = `admin:${adminToken}`
const send: Harness["send"] = (...request) => service.send(...request)

beforeAll(async () => {
  service = await startService(resourceTable)
  const made = async (path: string, body: string) =>
    (await send("POST", path, { basic, body })).header("location")
  const mailbox = await made("/mailboxes", "<mailbox><name>read</name></mailbox>")
  await made(mailbox, notification("d"))
  registrations = `${mailbox}/registrations`
  registration = await made(
    registrations,
    "<registration><callback>http://192.0.2.1/hook</callback></registration>"
  )
  content = await made("/content", "<any/>")
  tokens = "/accounts/admin/token"
})
afterAll(() => service.close())

/** Sends an XML document; returns its status and the detail of its problem. */
const refusal = async (path: string, body: string, method = "POST") => {
  const answer = await send(method, path, { basic, body })
  return [answer.status, answer.status < 400 ? "" : answer.child("detail")]
}

describe("an attribute that the schema does not have", () => {
  const where = (attributes: string) =>
    `<query on="customers"><where field="age" ${attributes}/></query>`
  const mailbox = "<mailbox href=\"/mailboxes/read\"/>"

  it.each([
    ["/queries", where("opp=\"ge\" value=\"3\""), "a where has no attribute opp"],
    [
      "/queries",
      "<query on=\"customers\"><order by=\"age\" dir=\"asc\"/></query>",
      "attribute dir"
    ],
    ["/queries", "<query on=\"customers\" limit=\"3\"/>", "a query has no attribute limit"],
    ["/cabinets", `<cabinet>${mailbox}<query contians="x"/></cabinet>`, "attribute contians"],
    ["/quotes", "<quote symbol=\"A\"><price curency=\"EUR\">1</price></quote>", "curency"],
    ["/mailboxes", "<mailbox titel=\"x\"/>", "a mailbox has no attribute titel"],
    ["/mailboxes", "<mailbox retention=\"P1D\"/>", "a mailbox has no attribute retention"],
    ["/mailboxes", "<mailbox><title lang=\"en\">x</title></mailbox>", "attribute lang: remove it"],
    ["/sessions", "<answer contineu=\"true\"/>", "an answer has no attribute contineu"],
    ["/accounts", "<account role=\"admin\"><name>a</name></account>", "an account has no"],
    [
      "/customers",
      "<customer nmae=\"x\" name=\"N\" age=\"3\"/>",
      "a customer has no attribute nmae"
    ]
  ])("is refused at %s: %s", async (path, body, detail) => {
    expect(await refusal(path, body)).toEqual([422, expect.stringContaining(detail)])
  })

  it("is refused in receipts, tokens and registrations", async () => {
    const receipt = "<receipt status=\"received\" mialbox=\"http://a.example/\"/>"
    expect(await refusal(content, receipt))
      .toEqual([422, "a receipt has no attribute mialbox: it may have status, mailbox"])
    expect(await refusal(tokens, "<token expire=\"P1D\"/>"))
      .toEqual([422, "a token has no attribute expire: it may have name, expires, scope"])
    const callback = "<callback>http://192.0.2.1/hook</callback>"
    expect(await refusal(registrations, `<registration topic="x">${callback}</registration>`))
      .toEqual([422, "a registration has no attribute topic: remove it"])
  })

  it("is refused in JSON, where a client names it as one", async () => {
    const answer = await send("POST", "/mailboxes", {
      basic,
      type: "application/json",
      body: "{\"@titel\":\"x\"}"
    })
    expect([answer.status, answer.child("detail")]).toEqual([
      422,
      "a mailbox has no attribute titel: it may have title"
    ])
  })

  it("is refused in the document of a form", async () => {
    const document = encodeURIComponent("<query on=\"customers\" limit=\"3\"/>")
    const type = "application/x-www-form-urlencoded"
    const answer = await send("POST", "/queries", { basic, type, body: `document=${document}` })
    expect([answer.status, answer.child("detail")])
      .toEqual([422, expect.stringContaining("a query has no attribute limit")])
  })

  it("is no element either, where the schema has an attribute", async () => {
    const query = "<query><contains>x</contains></query>"
    expect(await refusal("/cabinets", `<cabinet>${mailbox}${query}</cabinet>`))
      .toEqual([422, "a query has no element contains: remove it"])
    expect(await refusal("/queries", "<query on=\"customers\"><toString/></query>"))
      .toEqual([422, expect.stringContaining("a query has no element toString")])
  })
})

describe("an element that comes twice", () => {
  const callback = "<callback>http://192.0.2.1/hook</callback>"
  const mailbox = "<mailbox href=\"/mailboxes/read\"/>"
  const price = "<price>1</price>"

  it.each([
    [
      "/mailboxes",
      "<mailbox><retention/><retention>P1D</retention></mailbox>",
      "a mailbox has one retention"
    ],
    [
      "/mailboxes",
      "<mailbox><title>a</title><title>b</title></mailbox>",
      "a mailbox has one title"
    ],
    [
      "/cabinets",
      `<cabinet>${mailbox}<query/><query contains="x"/></cabinet>`,
      "a cabinet has one query"
    ],
    ["/quotes", `<quote symbol="A">${price}${price}</quote>`, "a quote has one price"],
    [
      "/queries",
      "<query on=\"customers\"><limit>1</limit><limit>2</limit></query>",
      "a query has one limit"
    ],
    ["/accounts", "<account><name>a</name><name>b</name></account>", "an account has one name"],
    ["/customers", "<customer><name>a</name><name>b</name><age>1</age></customer>", "has one name"]
  ])("is refused at %s: %s", async (path, body, detail) => {
    expect(await refusal(path, body)).toEqual([422, expect.stringContaining(detail)])
  })

  it("is refused in registrations, and in JSON as an array", async () => {
    const detail = "a registration has one callback only: remove the others"
    expect(await refusal(registrations, `<registration>${callback}${callback}</registration>`))
      .toEqual([422, detail])
    const answer = await send("POST", registrations, {
      basic,
      type: "application/json",
      body: JSON.stringify({ callback: ["http://192.0.2.1/a", "http://192.0.2.1/b"] })
    })
    expect([answer.status, answer.child("detail")]).toEqual([422, detail])
  })

  it("is accepted where the schema has a list", async () => {
    const condition = "<where field=\"age\" value=\"3\"/>"
    const body = `<query on="customers"><any>${condition}${condition}</any>${condition}</query>`
    expect(await refusal("/queries", body)).toEqual([201, ""])
    expect(await refusal("/cabinets", `<cabinet>${mailbox}${mailbox}</cabinet>`)).toEqual([201, ""])
    const roles = "<role>quotes</role><role>customers</role>"
    expect(await refusal("/accounts", `<account><name>two</name>${roles}</account>`))
      .toEqual([201, ""])
  })
})

describe("an element in text, and text between elements", () => {
  const mailbox = "<mailbox href=\"/mailboxes/read\"/>"

  it.each([
    ["/mailboxes", "<mailbox><title>a<b>c</b></title></mailbox>", "a title has no element b"],
    ["/mailboxes", "<mailbox><title><text>a</text></title></mailbox>", "a title has no element"],
    ["/mailboxes", "<mailbox>P1D</mailbox>", "a mailbox has no text of its own"],
    ["/sessions", "<answer continue=\"true\">a<b>c</b></answer>", "an answer has no element b"],
    ["/sessions", "<answer continue=\"true\"><text>a</text></answer>", "no element text"],
    ["/quotes", "<quote symbol=\"A\"><price>1<b>2</b></price></quote>", "a price has no element b"],
    ["/quotes", "<quote symbol=\"A\">x<price>1</price></quote>", "a quote has no text of its own"],
    [
      "/queries",
      "<query on=\"quotes\"><limit><b>2</b></limit></query>",
      "a limit has no element b"
    ],
    ["/queries", "<query on=\"quotes\"><all>none</all></query>", "an all has no text of its own"],
    [
      "/cabinets",
      `<cabinet>${mailbox}<query>x</query></cabinet>`,
      "a query has no text of its own"
    ],
    ["/accounts", "<account><name>a<b/></name></account>", "a name has no element b"],
    ["/accounts/admin/token", "<token>P1D</token>", "a token has no text of its own"]
  ])("is refused at %s: %s", async (path, body, detail) => {
    expect(await refusal(path, body)).toEqual([422, expect.stringContaining(detail)])
  })

  it("is refused in receipts, and in JSON", async () => {
    const receipt = "<receipt status=\"received\"><description>a<b/></description></receipt>"
    expect(await refusal(content, receipt)).toEqual([
      422,
      "a description has no element b: remove it"
    ])
    const answer = await send("POST", "/mailboxes", {
      basic,
      type: "application/json",
      body: "{\"title\":{\"b\":\"c\"}}"
    })
    expect([answer.status, answer.child("detail")])
      .toEqual([422, "a title has no element b: remove it"])
  })

  it("is not refused in notifications where they are open", async () => {
    const more = "<dc xml:lang=\"en\">a<b>c</b>d</dc></item>"
    const body = notification("d").replace("</item>", more)
    expect(await refusal("/mailboxes/read", body)).toEqual([202, ""])
  })
})

describe("another charset than UTF-8", () => {
  const declared = "<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?>"

  it.each([
    ["application/xml; charset=utf-16", "<mailbox/>", "the charset utf-16"],
    ["application/json; charset=iso-8859-1", "{}", "the charset iso-8859-1"],
    ["application/xml", `${declared}<mailbox/>`, "the declared encoding ISO-8859-1"]
  ])("is refused as %s: %s", async (type, body, what) => {
    const answer = await send("POST", "/mailboxes", { basic, type, body })
    expect([answer.status, answer.child("detail")])
      .toEqual([415, `${what} is not supported: send UTF-8`])
  })

  it("is refused in the declaration of a notification", async () => {
    expect(await refusal("/mailboxes/read", declared + notification("d")))
      .toEqual([415, "the declared encoding ISO-8859-1 is not supported: send UTF-8"])
  })

  it("is not what a part of UTF-8 is", async () => {
    const ascii = "<?xml version=\"1.0\" encoding=\"US-ASCII\"?>"
    const type = "application/xml; charset=\"UTF-8\""
    const answer = await send("POST", "/mailboxes", { basic, type, body: `${ascii}<mailbox/>` })
    expect(answer.status).toBe(201)
  })
})

describe("JSON of another type than application/json", () => {
  it.each(["application/activity+json", "application/ld+json", "application/vnd.example+json"])(
    "is refused as %s: it has its own names",
    async (type) => {
      const answer = await send("POST", "/mailboxes", { basic, type, body: "{\"title\":\"x\"}" })
      expect([answer.status, answer.header("accept-post")])
        .toEqual([415, expect.stringContaining("application/json")])
    }
  )

  it("is refused by a mailbox, which names the JSON-LD that it reads", async () => {
    const body = "{\"item\":{\"description\":\"d\",\"url\":\"u:1\"}}"
    const type = "application/activity+json"
    const answer = await send("POST", "/mailboxes/read", { type, body })
    expect([answer.status, answer.header("accept-post")])
      .toEqual([415, expect.stringContaining("application/ld+json")])
    const sent = await send("POST", "/outgoing/admin", { basic, type: "application/ld+json", body })
    expect(sent.status).toBe(415)
  })
})

describe("what remains accepted", () => {
  it("attributes of XML itself", async () => {
    const own = "xmlns=\"urn:a\" xmlns:b=\"urn:b\" xml:lang=\"en\""
    const body = `<mailbox ${own}><title xml:space="preserve">x</title></mailbox>`
    expect(await refusal("/mailboxes", body)).toEqual([201, ""])
  })

  it("the fields of a customer in either form", async () => {
    expect(await refusal("/customers/c1", "<customer name=\"N\" age=\"3\"/>", "PUT"))
      .toEqual([201, ""])
    const elements = "<customer><id>c1</id><name>N</name><age>3</age></customer>"
    expect(await refusal("/customers/c1", elements, "PUT")).toEqual([200, ""])
  })

  it("what the service has shown, in XML and in JSON", async () => {
    const made = async (path: string, body: string) =>
      (await send("POST", path, { basic, body })).header("location")
    const titled = "<mailbox><name>titled</name><title>T</title></mailbox>"
    const mailbox = await made("/mailboxes", titled)
    await made(mailbox, notification("d"))
    const paths = [
      mailbox,
      registration,
      await made("/cabinets", `<cabinet><title>T</title><mailbox href="${mailbox}"/></cabinet>`),
      await made("/quotes", "<quote symbol=\"BACK\"><price currency=\"EUR\">1</price></quote>"),
      await made("/customers", "<customer><name>Neo</name><age>37</age></customer>"),
      await made("/queries", "<query on=\"customers\"><where field=\"age\" value=\"3\"/></query>")
    ]
    for (const path of paths) {
      for (const type of ["application/xml", "application/json"]) {
        const { text } = await send("GET", path, { basic, accept: type })
        const answer = await send("PUT", path, { basic, type, body: text })
        expect([path, type, answer.status, answer.text])
          .toEqual([path, type, 200, expect.any(String)])
      }
    }
    const { xml } = await send("GET", mailbox, { basic })
    expect(xml.attributes["title"]).toBe("T")
  })
})
