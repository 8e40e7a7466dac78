/**
 * A form of a page, which replaces or removes a resource, is repeated with its Idempotency-Key
 * after an unknown outcome. What others have changed since stays so.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { mailboxOwnersTable } from "../../actors/mailbox/index.ts"
import { cabinetOf } from "./cabinets-harness.ts"
import { adminToken, type Answered, type Harness } from "./harness.ts"
import { repeatLost, startLosing } from "./lost-replies.ts"
import { notification } from "./mailbox-harness.ts"
import { outgoing } from "./outgoing-harness.ts"

const basic = `admin:${adminToken}`

let service: Harness
let names = 0
beforeAll(async () => {
  service = await startLosing()
})
afterAll(() => service.close())

const send: Harness["send"] = (...request) => service.send(...request)
const get = (path: string) => send("GET", path, { basic })
const kept = (message: string) => ({ message, isKept: true })
const neverKept = (message: string) => ({ message, isKept: false })
const location = (answered: Answered) => new URL(answered.header("location")).pathname

/** The form of a page. */
const form = (path: string, fields: Readonly<Record<string, string>>, key = "a form") => ({
  key,
  path,
  sending: {
    basic,
    type: "application/x-www-form-urlencoded",
    accept: "text/html",
    body: new URLSearchParams(fields).toString()
  }
})

const removing = (path: string) => form(path, { method: "delete" })

const open = async () => {
  const name = `form-${++names}`
  expect((await send("POST", "/mailboxes", { basic, headers: { Slug: name } })).status).toBe(201)
  return `/mailboxes/${name}`
}

describe("a cabinet", () => {
  const make = async () => {
    const mailbox = await open()
    const body = cabinetOf([mailbox], "<title>Old</title>")
    const path = location(await send("POST", "/cabinets", { basic, body }))
    const title = async () => (await get(path)).xml.attributes["title"]
    const put = async (text: string) => {
      const other = cabinetOf([mailbox], `<title>${text}</title>`)
      expect((await send("PUT", path, { basic, body: other })).status).toBe(200)
    }
    return { path, put, title, replacing: form(path, { title: "New", mailbox }) }
  }

  it.each([kept("Replace"), neverKept("Replace")])(
    "keeps what another client has changed since (kept: $isKept)",
    async (loss) => {
      const { put, replacing, title } = await make()
      const answered = await repeatLost(service, replacing, loss, () => put("Others"))
      expect([answered.status, await title()]).toEqual([409, "Others"])
    }
  )

  it.each([kept("Replace"), neverKept("Replace")])(
    "is replaced once (kept: $isKept)",
    async (loss) => {
      const { path, replacing, title } = await make()
      const answered = await repeatLost(service, replacing, loss)
      expect([answered.status, location(answered), await title()]).toEqual([303, path, "New"])
    }
  )

  it.each([kept("Remove"), neverKept("Remove")])("is removed (kept: $isKept)", async (loss) => {
    const { path } = await make()
    const answered = await repeatLost(service, removing(path), loss)
    expect([answered.status, location(answered)]).toEqual([303, "/cabinets"])
    expect((await get(path)).status).toBe(410)
    expect((await get("/cabinets")).text).not.toContain(path)
    const first = await send("POST", path, removing(path).sending)
    const other = { ...removing(path).sending, headers: { "Idempotency-Key": "\"another\"" } }
    expect([first.status, (await send("POST", path, other)).status]).toEqual([410, 410])
  })

  it("is not replaced by a form whose precondition fails", async () => {
    const { replacing: { path, sending }, title } = await make()
    const headers = { "If-Match": "\"other\"" }
    expect((await send("POST", path, { ...sending, headers })).status).toBe(412)
    const keyed = { ...headers, "Idempotency-Key": "\"conditional\"" }
    expect((await send("POST", path, { ...sending, headers: keyed })).status).toBe(412)
    expect(await title()).toBe("Old")
  })
})

describe("a mailbox", () => {
  const make = async () => {
    const path = await open()
    const title = async () => (await get(path)).xml.attributes["title"]
    const put = async (text: string) => {
      const body = `<mailbox><title>${text}</title></mailbox>`
      expect((await send("PUT", path, { basic, body })).status).toBe(200)
    }
    return { path, put, title }
  }
  const settings = (path: string) => form(`${path}/settings`, { method: "put", title: "New" })

  it.each([kept("Configure"), neverKept("Configure")])(
    "keeps what another client has changed since (kept: $isKept)",
    async (loss) => {
      const { path, put, title } = await make()
      const answered = await repeatLost(service, settings(path), loss, () => put("Others"))
      expect([answered.status, await title()]).toEqual([409, "Others"])
    }
  )

  it.each([kept("Configure"), neverKept("Configure")])(
    "gets its settings once (kept: $isKept)",
    async (loss) => {
      const { path, title } = await make()
      const answered = await repeatLost(service, settings(path), loss)
      expect([answered.status, await title()]).toEqual([303, "New"])
    }
  )

  it.each([kept("Configure"), neverKept("Configure")])(
    "gets the sender and the secret of its webhooks once (kept: $isKept)",
    async (loss) => {
      const path = await open()
      const body = "<mailbox><webhook>Build {/a}</webhook></mailbox>"
      expect((await send("PUT", path, { basic, body })).status).toBe(200)
      const fields = {
        sender: "grafana",
        webhook: "Build {/a}",
        secret: "0123456789abcdef"
      }
      const answered = await repeatLost(service, form(`${path}/webhooks`, fields), loss)
      expect(answered.status).toBe(303)
      expect((await get(path)).text).toContain("<webhook>grafana</webhook>")
      const sent = { body: "{\"title\":\"t\"}", type: "application/json" }
      const unsigned = await send("POST", path, sent)
      expect(unsigned.status).toBe(403)
    }
  )

  it.each([kept("Destroy"), neverKept("Destroy")])(
    "is removed, from the list of its owner, too (kept: $isKept)",
    async (loss) => {
      const { path } = await make()
      const name = path.replace("/mailboxes/", "")
      const removal = form(`${path}/settings`, { method: "delete", name })
      const answered = await repeatLost(service, removal, loss)
      expect([answered.status, location(answered)]).toEqual([303, "/mailboxes"])
      expect((await get(path)).status).toBe(410)
      const entry = service.service.records.get(mailboxOwnersTable, `admin/${name}`)
      expect(await service.run(entry)).toBeUndefined()
      expect((await send("POST", `${path}/settings`, removal.sending)).status).toBe(410)
    }
  )
})

describe("a registration", () => {
  const callback = "http://127.0.0.1:9/new"
  const make = async () => {
    const body = "<registration><callback>http://127.0.0.1:9/old</callback></registration>"
    const path = location(await send("POST", `${await open()}/registrations`, { basic, body }))
    const put = async () => {
      const other = "<registration><callback>http://127.0.0.1:9/others</callback></registration>"
      expect((await send("PUT", path, { basic, body: other })).status).toBe(200)
    }
    const current = async () => (await get(path)).child("callback")
    return { path, put, current, updating: form(path, { method: "put", callback }) }
  }

  it.each([kept("Update"), neverKept("Update")])(
    "keeps what another client has changed since (kept: $isKept)",
    async (loss) => {
      const { current, put, updating } = await make()
      const answered = await repeatLost(service, updating, loss, put)
      expect([answered.status, await current()]).toEqual([409, "http://127.0.0.1:9/others"])
    }
  )

  it.each([kept("Update"), neverKept("Update")])(
    "is changed once (kept: $isKept)",
    async (loss) => {
      const { current, path, updating } = await make()
      const answered = await repeatLost(service, updating, loss)
      expect([answered.status, location(answered), await current()]).toEqual([303, path, callback])
    }
  )

  it.each([kept("Delete"), neverKept("Delete")])("is removed (kept: $isKept)", async (loss) => {
    const { path } = await make()
    const answered = await repeatLost(service, removing(path), loss)
    expect([answered.status, (await get(path)).status]).toEqual([303, 410])
    expect((await send("POST", path, removing(path).sending)).status).toBe(410)
  })

  it("of WebSub that was made again since is not removed", async () => {
    const mailbox = await open()
    const subscribe = () =>
      send("POST", `${mailbox}/registrations`, {
        basic,
        type: "application/x-www-form-urlencoded",
        body: new URLSearchParams({
          "hub.mode": "subscribe",
          "hub.topic": `${service.base}${mailbox}`,
          "hub.callback": callback
        }).toString()
      })
    const path = location(await subscribe())
    const answered = await repeatLost(service, removing(path), kept("Delete"), async () => {
      expect((await subscribe()).status).toBe(202)
    })
    expect([answered.status, (await get(path)).status]).toEqual([409, 200])
  })
})

it.each([kept("Remove"), neverKept("Remove")])(
  "a notification is removed (kept: $isKept)",
  async (loss) => {
    const mailbox = await open()
    const deposited = await send("POST", mailbox, { body: notification("d") })
    const path = location(deposited)
    const answered = await repeatLost(service, removing(path), loss)
    expect([answered.status, (await get(path)).status]).toEqual([303, 410])
  }
)

it.each([kept("Delete"), neverKept("Delete")])(
  "an outgoing notification is removed (kept: $isKept)",
  async (loss) => {
    const body = outgoing(["http://127.0.0.1:9/none"])
    const path = location(await send("POST", "/outgoing/admin", { basic, body }))
    const answered = await repeatLost(service, removing(path), loss)
    expect([answered.status, location(answered)]).toEqual([303, "/outgoing/admin"])
    expect((await get(path)).status).toBe(410)
  }
)

describe("a row or query that another client has removed since", () => {
  const remove = async (path: string) => {
    expect((await send("DELETE", path, { basic })).status).toBe(204)
  }

  it("stays removed: a quote", async () => {
    const path = "/quotes/FORM"
    const body = "<quote symbol=\"FORM\"><price currency=\"USD\">1</price></quote>"
    expect((await send("PUT", path, { basic, body })).status).toBe(201)
    const replacing = form(path, { symbol: "FORM", price: "2", currency: "USD" })
    const answered = await repeatLost(service, replacing, kept("quotes"), () => remove(path))
    expect([answered.status, location(answered)]).toEqual([303, path])
    expect((await get(path)).status).toBe(410)
    expect((await send("POST", path, replacing.sending)).status).toBe(410)
  })

  it("stays removed: a query", async () => {
    const document = (age: number) =>
      `<query on="customers"><where field="age" op="ge" value="${age}"/></query>`
    const path = location(await send("POST", "/queries", { basic, body: document(1) }))
    const replacing = form(path, { document: document(2) })
    const answered = await repeatLost(service, replacing, kept("queries"), () => remove(path))
    expect([answered.status, location(answered)]).toEqual([303, path])
    expect((await get(path)).status).toBe(410)
  })
})
