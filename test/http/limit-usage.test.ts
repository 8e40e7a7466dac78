/** `/limits`: who uses most of the rate limits and quotas (protocol §7). */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { busiestShownMax } from "../../http/limits.ts"
import { resourceTable } from "../../http/resource-table.ts"
import { adminToken, type Harness, startService } from "./harness.ts"

const admin = `admin:${adminToken}`

let service: Harness
let alice: string

/** To one node, since each counts requests of its own. */
const send: Harness["send"] = (method, path, ...rest) =>
  service.send(method, `${service.nodes[0] ?? ""}${path}`, ...rest)

/** A request of a client without an account, at this address. */
const from = (address: string, path = "/problems", body?: string) =>
  send(body === undefined ? "GET" : "POST", path, {
    headers: { "X-Forwarded-For": address },
    ...body === undefined ? {} : { body, type: "text/plain" }
  })

beforeAll(async () => {
  const windowMs = 3_600_000
  service = await startService(resourceTable, {
    trustedProxies: ["127.0.0.0/8"],
    rateLimits: { address: { quota: 100, windowMs }, account: { quota: 1_000, windowMs } }
  })
  const body = "<account><name>alice</name></account>"
  alice = `alice:${(await send("POST", "/accounts", { basic: admin, body })).child("token")}`
})
afterAll(() => service.close())

interface Client {
  readonly network?: string
  readonly account?: string
  readonly used?: string
  readonly "used-bytes"?: string
  readonly href?: string
}

interface Listed {
  readonly clients?: { readonly client: ReadonlyArray<Client> }
}

interface Limits {
  readonly rates: { readonly rate: ReadonlyArray<Listed & { readonly policy: string }> }
  readonly quotas: { readonly quota: ReadonlyArray<Listed & { readonly name: string }> }
}

const limits = async (): Promise<Limits> => {
  const answer = await send("GET", "/limits", { basic: admin, accept: "application/json" })
  expect([answer.status, answer.header("cache-control")]).toEqual([200, "no-store"])
  return answer.json as Limits
}

const clientsOf = ({ rates }: Limits, policy: string): ReadonlyArray<Client> =>
  rates.rate.find((one) => one.policy === policy)?.clients?.client ?? []

const bytesOf = ({ quotas }: Limits, name: string): ReadonlyArray<Client> =>
  quotas.quota.find((one) => one.name === name)?.clients?.client ?? []

describe("the page of limits", () => {
  it("shows admins the busiest networks and accounts, busiest first", async () => {
    for (let n = 0; n < 5; n++) await from("192.0.2.7")
    for (let n = 0; n < 9; n++) await from("198.51.100.7")
    const headers = { "X-Forwarded-For": "203.0.113.1" }
    for (let n = 0; n < 4; n++) await send("GET", "/mailboxes", { basic: alice, headers })
    await from("192.0.2.7", "/content", "x".repeat(2_000))
    await from("198.51.100.7", "/content", "x".repeat(1_000))
    await send("POST", "/content", { basic: alice, body: "x".repeat(500), type: "text/plain" })
    const shown = await limits()
    const [first, second] = clientsOf(shown, "address")
    expect(first).toEqual({ network: "198.51.100.0/24", used: "10" })
    expect(second).toEqual({ network: "192.0.2.0/24", used: "6" })
    expect(clientsOf(shown, "account").map(({ account }) => account)).toContain("alice")
    expect(bytesOf(shown, "network").map(({ network }) => network))
      .toEqual(["192.0.2.0/24", "198.51.100.0/24"])
    expect(Number(bytesOf(shown, "network")[0]?.["used-bytes"])).toBeGreaterThan(2_000)
    expect(bytesOf(shown, "account")).toMatchObject([
      { account: "alice", href: `${service.base}/content?owner=alice` }
    ])
    const page = await send("GET", "/limits", { basic: admin, accept: "text/html" })
    for (const part of ["198.51.100.0/24", "/content?owner=alice", "Requests of accounts"]) {
      expect(page.text).toContain(part)
    }
    const bar = /<svg class="share"([^>]*198\.51\.100\.0\/24[^]*?)<\/svg>/
    const [, drawn = ""] = bar.exec(page.text) ?? []
    expect(drawn).toContain("role=\"img\" aria-label=\"Share of 198.51.100.0/24: 10 %\"")
    // A tenth of 400 units.
    expect(drawn).toContain("d=\"M0 .5h40\"")
  })

  it("is for admins alone", async () => {
    expect((await from("192.0.2.7", "/limits")).status).toBe(401)
    expect((await send("GET", "/limits", { basic: alice })).status).toBe(403)
  })

  it("shows at most 20 of each", async () => {
    for (let n = 0; n < busiestShownMax + 5; n++) await from(`203.0.${n}.1`)
    expect(clientsOf(await limits(), "address")).toHaveLength(busiestShownMax)
  })
})
