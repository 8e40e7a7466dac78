/**
 * A POST of a row or a query is repeated with its Idempotency-Key after an unknown outcome, and
 * others have changed the row in the meantime. The repetition changes nothing.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { childrenOf } from "../../http/formats/xml/index.ts"
import { anonymousQueriesMax } from "../../http/limits.ts"
import { creationChanges, networkHash, type StoredQuery } from "../../http/resources/rows/index.ts"
import { customer } from "./customers-harness.ts"
import { adminToken, type Answered, type Harness } from "./harness.ts"
import { repeatLost, startLosing } from "./lost-replies.ts"

const basic = `admin:${adminToken}`

let service: Harness
beforeAll(async () => {
  service = await startLosing()
})
afterAll(() => service.close())

const send: Harness["send"] = (...request) => service.send(...request)
const get = async (path: string) => (await send("GET", path, { basic })).status
const price = async (symbol: string) => (await send("GET", `/quotes/${symbol}`)).child("price")
const quote = (symbol: string, amount: number) =>
  `<quote symbol="${symbol}"><price currency="USD">${amount}</price></quote>`
const location = (answered: Answered) => new URL(answered.header("location")).pathname

const kept = (message: string) => ({ message, isKept: true })
const neverKept = (message: string) => ({ message, isKept: false })

describe("a quote", () => {
  const post = (symbol: string, type?: string) => ({
    key: symbol,
    path: "/quotes",
    sending: type === undefined
      ? { basic, body: quote(symbol, 10) }
      : { basic, body: `symbol=${symbol}&price=10&currency=USD`, type, accept: "text/html" }
  })

  it("keeps what another client has changed since", async () => {
    const changed = await repeatLost(service, post("AA"), kept("quotes"), async () => {
      expect(await price("AA")).toBe("10")
      expect((await send("PUT", "/quotes/AA", { basic, body: quote("AA", 20) })).status).toBe(200)
    })
    expect([changed.status, location(changed), changed.child("price")]).toEqual([
      201,
      "/quotes/AA",
      "10"
    ])
    expect(await price("AA")).toBe("20")
  })

  it("stays removed, and so does a page's form", async () => {
    const removed = await repeatLost(service, post("BB"), kept("quotes"), async () => {
      expect((await send("DELETE", "/quotes/BB", { basic })).status).toBe(204)
    })
    expect([removed.status, await get("/quotes/BB")]).toEqual([201, 410])
    const form = post("CC", "application/x-www-form-urlencoded")
    const sent = await repeatLost(service, form, kept("quotes"), async () => {
      expect((await send("DELETE", "/quotes/CC", { basic })).status).toBe(204)
    })
    expect([sent.status, await get("/quotes/CC")]).toEqual([303, 410])
  })

  it("answers with the time of the first attempt", async () => {
    const first = { text: "" }
    const answered = await repeatLost(service, post("DD"), kept("quotes"), async () => {
      first.text = (await send("GET", "/quotes/DD")).text
    })
    expect(answered.text).toBe(first.text)
  })

  it("is stored by the repetition if the first attempt has not", async () => {
    const answered = await repeatLost(service, post("EE"), neverKept("quotes"), async () => {
      expect(await get("/quotes/EE")).toBe(404)
    })
    expect([answered.status, await price("EE")]).toEqual([201, "10"])
  })

  it("is removed once by the form of its page", async () => {
    const put = () => send("PUT", "/quotes/FF", { basic, body: quote("FF", 1) })
    await put()
    const sending = { basic, body: "method=delete", type: "application/x-www-form-urlencoded" }
    const removing = { key: "FF", path: "/quotes/FF", sending: { ...sending, accept: "text/html" } }
    const answered = await repeatLost(service, removing, kept("quotes"), async () => {
      expect((await put()).status).toBe(201)
    })
    expect([answered.status, await price("FF")]).toEqual([303, "1"])
  })
})

describe("a customer", () => {
  const post = (key: string) => ({
    key,
    path: "/customers",
    sending: { basic, body: customer("Arthur", 40) }
  })
  const only = async () => {
    const { xml } = await send("GET", "/customers")
    const [first] = childrenOf(xml, "customer")
    return new URL(first?.attributes["href"] ?? "").pathname
  }

  it("keeps what another client has changed or removed since", async () => {
    const changed = await repeatLost(service, post("change"), kept("customers"), async () => {
      const body = customer("Bors", 41)
      expect((await send("PUT", await only(), { basic, body })).status).toBe(200)
    })
    expect([changed.status, changed.child("name")]).toEqual([201, "Arthur"])
    expect((await send("GET", location(changed))).child("name")).toBe("Bors")
    await send("DELETE", location(changed), { basic })
    const removed = await repeatLost(service, post("remove"), kept("customers"), async () => {
      expect((await send("DELETE", await only(), { basic })).status).toBe(204)
    })
    expect([removed.status, await get(location(removed))]).toEqual([201, 410])
  })
})

describe("a query", () => {
  const body = "<query on=\"customers\"><where field=\"age\" op=\"ge\" value=\"21\"/></query>"

  it("stays removed", async () => {
    const answered = await repeatLost(
      service,
      { key: "query", path: "/queries", sending: { basic, body } },
      kept("queries"),
      async () => {
        const { xml } = await send("GET", "/queries", { basic })
        const [first] = childrenOf(xml, "query")
        const removed = await send("DELETE", first?.attributes["href"] ?? "", { basic })
        expect(removed.status).toBe(204)
      }
    )
    expect([answered.status, await get(location(answered))]).toEqual([201, 410])
  })

  it("does not exceed the quota that it has filled itself", async () => {
    const others = Array.from({ length: anonymousQueriesMax - 1 }, (_, at) => `filling-${at}-query`)
    const stored: StoredQuery = {
      query: { on: "customers" },
      address: networkHash("127.0.0.0/24"),
      editHash: "",
      createdMs: Date.now()
    }
    for (let at = 0; at < others.length; at += 20) {
      const changes = others.slice(at, at + 20).flatMap((id) => creationChanges(id, stored))
      await service.run(service.service.records.write(changes))
    }
    const anonymous = { key: "an anonymous client, 128 bits", path: "/queries", sending: { body } }
    const answered = await repeatLost(service, anonymous, kept("queries"), async () => {
      expect((await send("POST", "/queries", { body })).status).toBe(429)
    })
    expect([answered.status, await get(location(answered))]).toEqual([201, 200])
  })
})
