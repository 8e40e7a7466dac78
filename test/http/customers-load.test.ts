/** Whole files of customers by PUT (protocol §3). */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { childrenOf } from "../../http/formats/xml/index.ts"
import { type Area, customer, startArea } from "./customers-harness.ts"
import { eventually } from "./receiver.ts"

let area: Area

beforeAll(async () => {
  area = await startArea()
})
afterAll(() => area.close())

const csv = "text/csv"
const lines = "application/x-ndjson"

const load = (body: string | Uint8Array, type: string, headers: Record<string, string> = {}) =>
  area.send("PUT", "/customers", { basic: area.clerk, body, type, headers })

const readCustomer = async (id: string) => {
  const { status, xml } = await area.send("GET", `/customers/${id}`)
  return status === 200
    ? Object.fromEntries(childrenOf(xml).map(({ children, name }) => [name, children.join("")]))
    : status
}

describe("PUT /customers", () => {
  it("needs the role", async () => {
    const body = "id,name,age\nx,X,1\n"
    expect((await area.send("PUT", "/customers", { body, type: csv })).status).toBe(401)
    const basic = area.nobody
    expect((await area.send("PUT", "/customers", { basic, body, type: csv })).status).toBe(403)
    expect(await readCustomer("x")).toBe(404)
  })

  it("reads CSV with quotes, commas, line feeds in cells, and any line ends", async () => {
    const body = "\ufeffid,name,Age,city\r\nv1,\"O'Brien, \"\"Pat\"\"\",30,\"two\nlines\"\r\n" +
      "v2,Zoë,0,\r\n\r\nv3,\u{1F40E},150,X"
    const loaded = await load(body, "text/csv; charset=UTF-8")
    expect(loaded.status, loaded.text).toBe(200)
    expect(loaded.xml.attributes).toMatchObject({
      status: "done",
      rows: "3",
      created: "3",
      replaced: "0",
      skipped: "0"
    })
    expect(await readCustomer("v1")).toEqual({
      name: "O'Brien, \"Pat\"",
      age: "30",
      city: "two\nlines"
    })
    expect(await readCustomer("v2")).toEqual({ name: "Zoë", age: "0" })
    expect(await readCustomer("v3")).toEqual({ name: "\u{1F40E}", age: "150", city: "X" })
    expect((await area.send("GET", loaded.header("location"))).text).toBe(loaded.text)
  })

  it("reads JSON lines, JSON and XML, also the service's own answer", async () => {
    const first = { id: "j1", name: "J", age: 41 }
    const second = { id: "j2", name: "K", age: "42", city: null }
    const jsonl = `${JSON.stringify(first)}\n\n${JSON.stringify(second)}`
    expect((await load(jsonl, lines)).status).toBe(200)
    expect(await readCustomer("j2")).toEqual({ name: "K", age: "42" })
    const xml = `<?xml version="1.0"?><customers>\n ${
      customer("X &amp; Y", 43).replace("<customer", "<customer id=\"x1\"")
    }<!-- --><customer><id>x2</id><name><![CDATA[<Z>]]></name><age>44</age></customer></customers>`
    expect((await load(xml, "application/xml")).status).toBe(200)
    expect([await readCustomer("x1"), await readCustomer("x2")]).toEqual([
      { name: "X & Y", age: "43" },
      { name: "<Z>", age: "44" }
    ])
    for (const accept of ["application/xml", "application/json"]) {
      const all = await area.send("GET", "/customers?agemin=41", { accept })
      const loaded = await load(all.text, accept)
      expect(loaded.status, loaded.text).toBe(200)
      expect(Number(loaded.xml.attributes["replaced"])).toBeGreaterThanOrEqual(4)
      expect((await area.send("GET", "/customers?agemin=41", { accept })).text).toBe(all.text)
    }
  })

  it("replaces the customers in the file, and leaves the others", async () => {
    await area.put("keep", customer("Kept", 70))
    await area.put("swap", customer("Before", 71, "<city>C</city>"))
    const loaded = await load("id,name,age\nswap,After,72\nswap,Last,73\nnew1,N,74\n", csv)
    expect(loaded.xml.attributes).toMatchObject({ rows: "3", created: "1", replaced: "2" })
    expect(await readCustomer("swap")).toEqual({ name: "Last", age: "73" })
    expect(await area.idsOf("/customers?agemin=70&return=age")).toEqual([
      "keep",
      "new1",
      "swap",
      "v3"
    ])
    await area.send("DELETE", "/customers/swap", { basic: area.clerk })
    expect(await readCustomer("swap")).toBe(410)
    expect((await load("id,name,age\nswap,Back,1\n", csv)).status).toBe(200)
    expect(await readCustomer("swap")).toEqual({ name: "Back", age: "1" })
  })

  it.each([
    ["a fault in the last row", csv, "id,name,age\nz1,A,1\nz2,B,x\n", 422, "row 2"],
    [
      "a missing id",
      lines,
      "{\"id\":\"z1\",\"name\":\"A\",\"age\":1}\n{\"name\":\"B\",\"age\":1}",
      422,
      "row 2"
    ],
    ["an id of other signs", csv, "id,name,age\nz1,A,1\n../x,B,1", 422, "row 2"],
    ["an unknown column", csv, "id,name,age,shoe\nz1,A,1,44\n", 422, "shoe"],
    ["cells too many", csv, "id,name,age\nz1,A,1,2\n", 422, "row 1"],
    ["no header", csv, "", 400, "first line"],
    ["no column id", csv, "name,age\nA,1\n", 400, "id"],
    ["an open quote", csv, "id,name,age\nz1,A,1\nz2,\"B,1\n", 400, "quote"],
    ["text after a quote", csv, "id,name,age\nz1,A,1\nz2,\"B\"b,1\n", 400, "quote"],
    ["a line that is no JSON", lines, "{\"id\":\"z1\",\"name\":\"A\",\"age\":1}\n{", 422, "row 2"],
    ["JSON that is no object", lines, "[1]\n", 422, "row 1"],
    ["JSON with parts", lines, "{\"id\":{\"a\":1}}\n", 422, "row 1"],
    [
      "XML that breaks off",
      "application/xml",
      `<customers><customer id="z1"><name>A</name><age>1</age></customer>`,
      400,
      "row 1"
    ],
    ["another root", "application/xml", "<people/>", 400, "customers"],
    [
      "another encoding",
      "application/xml",
      "<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?><customers><customer/></customers>",
      415,
      "the declared encoding ISO-8859-1 is not supported: send UTF-8"
    ],
    ["another child", "application/xml", "<customers><person/></customers>", 400, "customer"],
    [
      "a document type",
      "application/xml",
      "<!DOCTYPE customers><customers/>",
      400,
      "document type"
    ],
    ["broken JSON", "application/json", "{", 400, "JSON"]
  ])("refuses all of a file for %s", async (_, type, body, status, detail) => {
    const refused = await load(body, type)
    expect([refused.status, refused.child("detail")]).toEqual([
      status,
      expect.stringContaining(detail)
    ])
    expect(await readCustomer("z1")).toBe(404)
  })

  it("refuses other encodings and types", async () => {
    const bad = Buffer.concat([
      Buffer.from("id,name,age\nz1,"),
      Buffer.from([0xff]),
      Buffer.from(",1\n")
    ])
    expect((await load(bad, csv)).status).toBe(400)
    expect((await load("id,name,age\n", "text/csv; charset=iso-8859-1")).status).toBe(415)
    const other = await load("id,name,age\n", "text/plain")
    expect([other.status, other.header("accept")]).toEqual([415, expect.stringContaining("csv")])
    expect((await load("id,name,age\n", csv, { "If-Match": "*" })).status).toBe(412)
  })

  it("skips invalid rows on request, and reports them", async () => {
    const body = "id,name,age\nk1,A,1\nk2,B,x\nk3,C\nk4,D,4\n"
    const loaded = await load(body, csv, { Prefer: "handling=lenient" })
    expect(loaded.status).toBe(200)
    expect(loaded.header("preference-applied")).toBe("handling=lenient")
    expect(loaded.xml.attributes).toMatchObject({ rows: "4", skipped: "2", created: "2" })
    expect(childrenOf(loaded.xml, "problem").map(({ attributes }) => attributes["row"])).toEqual([
      "2",
      "3"
    ])
    expect([await readCustomer("k1"), await readCustomer("k2"), await readCustomer("k4")]).toEqual([
      { name: "A", age: "1" },
      404,
      { name: "D", age: "4" }
    ])
    const broken = await load("id,name,age\nk5,\"A", csv, { Prefer: "handling=lenient" })
    expect(broken.status).toBe(400)
  })

  it("answers at once if the client prefers that", async () => {
    const body = `id,name,age\n${
      Array.from({ length: 5_000 }, (_, at) => `many${at},Name ${at},${at % 100}`).join("\n")
    }`
    const accepted = await load(body, csv, { Prefer: "respond-async" })
    expect(accepted.status).toBe(202)
    const done = await eventually("it is loaded", async () => {
      const answer = await area.send("GET", accepted.header("location"))
      return answer.xml.attributes["status"] === "done" ? answer : undefined
    })
    expect(done.xml.attributes).toMatchObject({ rows: "5000", read: "5000", created: "5000" })
    const path = "/customers?agemin=98&limit=1000&return=age"
    const found = (await area.idsOf(path)).filter((id) => id.startsWith("many"))
    const expected = Array.from({ length: 5_000 }, (_, at) => at).filter((at) => at % 100 >= 98)
    expect(found).toEqual(expected.map((at) => `many${at}`).sort())
    expect((await area.send("GET", "/loads/AAAAAAAAAAAAAAAAAAAAAA")).status).toBe(404)
  })
})
