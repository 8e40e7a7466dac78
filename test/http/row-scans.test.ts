/** Scans by stored queries: a node runs so many for each network, and for all of them. */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { resourceTable } from "../../http/resource-table.ts"
import { RequestHeaders } from "../../http/wire/request.ts"
import { type Harness, startService } from "./harness.ts"

let service: Harness

beforeAll(async () => {
  service = await startService(resourceTable, {
    trustedProxies: ["127.0.0.0/8"],
    rowScans: { totalMax: 3, perNetworkMax: 2 }
  })
})
afterAll(() => service.close())

describe("queries", () => {
  it("beyond the limit are refused, by its name, and other requests go on", async () => {
    const { rowScans } = service.service
    const created = await service.send("POST", "/queries", { body: "<query on=\"customers\"/>" })
    const query = encodeURIComponent(created.header("location"))
    // Each node counts its own.
    const listing = `${service.nodes[0] ?? ""}/customers`
    const read = (address: string, href: string) =>
      service.send("GET", href, { headers: { "X-Forwarded-For": address } })
    const run = (address: string) => read(address, `${listing}?query=${query}`)
    const hold = (address: string) =>
      rowScans.take({
        headers: new RequestHeaders(["x-forwarded-for", address]),
        remoteAddress: "127.0.0.1"
      })
    const held = [hold("192.0.2.1"), hold("192.0.2.2")]
    const refused = await run("192.0.2.3")
    expect([refused.status, refused.header("retry-after")]).toEqual([429, "1"])
    expect(refused.child("detail")).toContain("the clients of 192.0.2.0/24 have 2 queries running")
    expect(refused.text).toContain("row-scans")
    expect((await read("192.0.2.3", listing)).status).toBe(200)
    expect((await run("198.51.100.1")).status).toBe(200)
    held.push(hold("203.0.113.1"))
    const full = await run("198.51.100.1")
    expect([full.status, full.header("retry-after")]).toEqual([503, "1"])
    expect(full.child("detail")).toContain("the limit of the service")
    for (const place of held) if (place._tag === "Taken") place.release()
    expect((await run("192.0.2.3")).status).toBe(200)
    // What has run, and what was refused, leaves its place.
    expect(rowScans.size).toBe(0)
  })
})
