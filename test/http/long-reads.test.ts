/** Listings and searches: a node runs so many for each network, and for all of them. */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { NetworkPlaces } from "../../http/rates/network-places.ts"
import { resourceTable } from "../../http/resource-table.ts"
import { RequestHeaders } from "../../http/wire/request.ts"
import { adminToken, type Harness, startService } from "./harness.ts"

const admin = `admin:${adminToken}`

const limits = { totalMax: 3, perNetworkMax: 2 }

let service: Harness

beforeAll(async () => {
  service = await startService(resourceTable, {
    trustedProxies: ["127.0.0.0/8"],
    actorListings: limits,
    textSearches: limits,
    docsSearches: limits
  })
  await service.send("POST", "/mailboxes", { basic: admin, headers: { Slug: "alice" } })
})
afterAll(() => service.close())

/** Each node counts its own. */
const at = (path: string) => `${service.nodes[0] ?? ""}${path}`

const get = (path: string, address?: string) =>
  service.send("GET", at(path), {
    basic: admin,
    headers: address === undefined ? {} : { "X-Forwarded-For": address }
  })

const newCabinet = async (query: string): Promise<string> => {
  const created = await service.send("POST", "/cabinets", {
    basic: admin,
    body: `<cabinet><mailbox href="${service.base}/mailboxes/alice"/>${query}</cabinet>`
  })
  return created.header("location").slice(service.base.length)
}

const listings = [
  "/sessions?limit=1000",
  "/sessions",
  "/cabinets",
  "/content",
  "/mailboxes",
  "/mailboxes/alice/registrations",
  "/outgoing/admin"
]

const searches = [
  "/mailboxes/alice?q=x",
  "/mailboxes/alice?unread=true",
  "cabinet"
]

const docsSearch = "/docs?q=message"

const kinds = [
  ...listings.map((path) => ["actorListings", path] as const),
  ...searches.map((path) => ["textSearches", path] as const),
  ["docsSearches", docsSearch] as const
]

const pathOf = async (path: string): Promise<string> =>
  path === "cabinet" ? await newCabinet("<query contains=\"x\"/>") : path

const hold = (places: NetworkPlaces, address: string) =>
  places.take({
    headers: new RequestHeaders(["x-forwarded-for", address]),
    remoteAddress: "127.0.0.1"
  })

describe("reads that take long", () => {
  it.each(kinds)("have places, beyond which they are refused: %s, %s", async (kind, named) => {
    const places: NetworkPlaces = service.service[kind]
    const path = await pathOf(named)
    const held = [hold(places, "192.0.2.1"), hold(places, "192.0.2.2")]
    const refused = await get(path, "192.0.2.3")
    expect([refused.status, refused.header("retry-after")]).toEqual([429, "1"])
    expect(refused.child("detail")).toContain("the clients of 192.0.2.0/24 have 2 ")
    expect((await get(path, "198.51.100.1")).status).toBe(200)
    held.push(hold(places, "203.0.113.1"))
    const full = await get(path, "198.51.100.1")
    expect([full.status, full.header("retry-after")]).toEqual([503, "1"])
    // A client on this machine has no limit.
    expect((await get(path)).status).toBe(200)
    for (const place of held) if (place._tag === "Taken") place.release()
    expect((await get(path, "192.0.2.3")).status).toBe(200)
    // What has run, and what was refused, leaves its place.
    expect(places.size).toBe(0)
  })

  it.each([
    "/mailboxes/alice",
    "/mailboxes/alice?limit=1000",
    "cabinet without a text",
    "/docs?q=",
    "/docs/quick-start"
  ])(
    "are not those that read one page: %s",
    async (named) => {
      const path = named.startsWith("/") ? named : await newCabinet("")
      const { docsSearches, textSearches } = service.service
      const held = [docsSearches, textSearches].flatMap((places) =>
        ["192.0.2.1", "192.0.2.2"].map((address) => hold(places, address))
      )
      expect((await get(path, "192.0.2.3")).status).toBe(200)
      for (const place of held) if (place._tag === "Taken") place.release()
    }
  )

  it("leave out the previews of a page that gets no place, and the page is there", async () => {
    const deposited = await service.send("POST", at("/mailboxes/alice"), {
      type: "text/plain",
      body: "Tea\nis on the table"
    })
    expect(deposited.status).toBe(202)
    const page = async (): Promise<string> => {
      const headers = { "X-Forwarded-For": "192.0.2.3" }
      const answer = await service.send("GET", at("/mailboxes/alice"), {
        basic: admin,
        accept: "text/html",
        headers
      })
      expect(answer.status).toBe(200)
      return answer.text
    }
    const preview = "is on the table</p>"
    expect(await page()).toContain(preview)
    const places = service.service.actorListings
    const held = [hold(places, "192.0.2.1"), hold(places, "192.0.2.2")]
    const without = await page()
    expect(without).toContain(">Tea</a>")
    expect(without).not.toContain(preview)
    for (const place of held) if (place._tag === "Taken") place.release()
    expect(await page()).toContain(preview)
    expect(places.size).toBe(0)
  })

  it.each(
    [
      ["docsSearches", "/mailboxes/alice?q=x"],
      ["textSearches", docsSearch]
    ] as const
  )("leave the places of others: all of %s, and %s", async (kind, path) => {
    const addresses = ["192.0.2.1", "198.51.100.1", "203.0.113.1"]
    const held = addresses.map((address) => hold(service.service[kind], address))
    expect(held.map(({ _tag }) => _tag)).toEqual(["Taken", "Taken", "Taken"])
    expect((await get(path, "192.0.2.3")).status).toBe(200)
    for (const place of held) if (place._tag === "Taken") place.release()
  })
})
