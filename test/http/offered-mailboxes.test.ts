/** The names of mailboxes that a page offers to who is signed in. */
import { Effect } from "effect"
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { mailboxOwnersTable } from "../../actors/mailbox/index.ts"
import type { NetworkPlaces } from "../../http/rates/network-places.ts"
import { resourceTable } from "../../http/resource-table.ts"
import { RequestHeaders } from "../../http/wire/request.ts"
import { adminToken, type Harness, startService } from "./harness.ts"

const admin = `admin:${adminToken}`

let service: Harness

/** How often the list of an account was read, and whether the store answers. */
const store = { reads: 0, isAnswering: true }

beforeAll(async () => {
  service = await startService(
    (one) => {
      const { records } = one
      const range: typeof records.range = (table, options) => {
        if (table !== mailboxOwnersTable) return records.range(table, options)
        store.reads++
        return store.isAnswering ? records.range(table, options) : Effect.never
      }
      return resourceTable({ ...one, records: { ...records, range } })
    },
    { trustedProxies: ["127.0.0.0/8"], actorListings: { totalMax: 2, perNetworkMax: 1 } }
  )
  const body = "<account><name>dora</name></account>"
  expect((await service.send("POST", "/accounts", { basic: admin, body })).status).toBe(201)
})
afterAll(() => service.close())

beforeEach(() => {
  store.reads = 0
  store.isAnswering = true
})

const form = (fields: Readonly<Record<string, string>>) => ({
  body: new URLSearchParams(fields).toString(),
  type: "application/x-www-form-urlencoded"
})

/** The cookie of a browser of dora, by a token of this scope. */
const signIn = async (scope: string): Promise<string> => {
  const made = await service.send("POST", "/accounts/dora/token", {
    basic: admin,
    ...form({ name: scope, ...scope === "" ? {} : { scope } })
  })
  const signedIn = await service.send("POST", "/sign-in", {
    headers: { "Sec-Fetch-Site": "same-origin" },
    ...form({ account: "dora", token: made.xml.children.join("") })
  })
  return signedIn.header("set-cookie").split(";")[0] ?? ""
}

const at = (path: string, cookie: string, accept = "text/html", address = "127.0.0.1") =>
  service.send("GET", `${service.nodes[0] ?? ""}${path}`, {
    accept,
    headers: { Cookie: cookie, "X-Forwarded-For": address }
  })

describe("a page offers the mailboxes of an account", () => {
  const secret = "dora-secret-project"
  let cookie = ""

  beforeAll(async () => {
    cookie = await signIn("")
    const headers = { Cookie: cookie, Origin: service.base, Slug: secret }
    expect((await service.send("POST", "/mailboxes", { headers })).status).toBe(201)
  })

  it.each([
    ["", 200],
    ["read", 200],
    ["admin", 200],
    ["deposit", 403],
    ["send", 403],
    [`read mailbox:${secret}`, 403]
  ])("where its token may list them: scope %j", async (scope, status) => {
    const browser = await signIn(scope)
    expect((await at("/mailboxes", browser)).status).toBe(status)
    const { text } = await at("/", browser)
    expect(text).toContain("Sign out dora")
    expect(text.includes(secret)).toBe(status === 200)
  })

  it("only to a page: another answer reads no list", async () => {
    for (const accept of ["application/xml", "application/json", "*/*"]) {
      expect((await at("/", cookie, accept)).status).toBe(200)
    }
    expect((await at("/?format=json", cookie)).status).toBe(200)
    expect(store.reads).toBe(0)
    expect((await at("/?format=html", cookie, "application/xml")).text).toContain(secret)
    expect(store.reads).toBe(1)
  })

  it("within the bound of listings, beyond which the page leaves them out", async () => {
    const places: NetworkPlaces = service.service.actorListings
    const held = places.take({
      headers: new RequestHeaders(["x-forwarded-for", "192.0.2.1"]),
      remoteAddress: "127.0.0.1"
    })
    const page = await at("/", cookie, "text/html", "192.0.2.2")
    expect([page.status, page.text.includes(secret), store.reads]).toEqual([200, false, 0])
    if (held._tag === "Taken") held.release()
    expect((await at("/", cookie, "text/html", "192.0.2.2")).text).toContain(secret)
    expect(places.size).toBe(0)
  })

  it("and comes without them while the store does not answer", async () => {
    store.isAnswering = false
    const page = await at("/", cookie)
    expect([page.status, page.text.includes(secret), store.reads]).toEqual([200, false, 1])
    expect(service.service.actorListings.size).toBe(0)
  })
})
