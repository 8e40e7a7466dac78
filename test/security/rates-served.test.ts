/** Rate limits as clients see them: 429, its fields, and the clients that they do not affect. */
import { afterEach, expect, it } from "vitest"
import { documentBytesPerRequest } from "../../http/limits.ts"
import type { RateLimits } from "../../http/rates/rate-limiter.ts"
import { resourceTable } from "../../http/resource-table.ts"
import { adminToken, type Answered, type Harness, startService } from "../http/harness.ts"
import type { TestSettings } from "../http/nodes.ts"

let service: Harness
afterEach(() => service.close())

/** A window so long that a test regains no request. */
const windowMs = 3_600_000
const addressQuota = 5
const accountQuota = 4
const both = {
  address: { quota: addressQuota, windowMs },
  account: { quota: accountQuota, windowMs }
}

/** Each node counts separately: all requests go to the first. */
const start = async (rateLimits: RateLimits, more: TestSettings = {}) => {
  service = await startService(resourceTable, { rateLimits, ...more })
  const [node = ""] = service.nodes
  return (method: string, path: string, options: Parameters<Harness["send"]>[2] = {}) =>
    service.send(method, node + path, {
      ...options,
      // A client on this machine is not limited, unless it forwards the requests of others.
      headers: { "X-Forwarded-For": "203.0.113.1", ...options.headers }
    })
}

const clientsHere = "the clients of 127.0.0.0/24"

const expectRefusal = (answered: Answered, policy: string, quota: number, who: string): void => {
  expect([answered.status, answered.header("ratelimit-policy")]).toEqual([
    429,
    `"${policy}";q=${quota};w=3600`
  ])
  expect(answered.header("ratelimit")).toMatch(new RegExp(`^"${policy}";r=0;t=\\d+$`))
  expect(Number(answered.header("retry-after"))).toBeGreaterThan(0)
  expect(answered.header("content-type")).toContain("application/problem+xml")
  expect(answered.child("type")).toMatch(/\/problems\/too-many-requests$/)
  expect(answered.child("detail")).toContain(`${who} may make ${quota} requests`)
}

it("count a large document as several requests, also of a mailbox's hot path", async () => {
  const quota = 20
  const send = await start({ address: { quota, windowMs } })
  await service.send("POST", "/mailboxes", { basic: "admin", headers: { Slug: "large" } })
  const left = async (method: string, path: string, body?: string): Promise<number> => {
    const answered = await send(method, path, body === undefined ? {} : { body })
    return Number(/;r=(\d+);/.exec(answered.header("ratelimit"))?.[1])
  }
  const note = "x".repeat(3 * documentBytesPerRequest)
  const item = `<item><description>d</description><url>u:x</url><note>${note}</note></item>`
  const document = `<notification>${item}</notification>`
  expect(await left("POST", "/mailboxes/large", document)).toBe(quota - 1)
  expect(await left("GET", "/")).toBe(quota - 5)
  expect(await left("POST", "/sessions", document)).toBe(quota - 6)
  expect(await left("GET", "/")).toBe(quota - 10)
})

it("count all requests of an address, and report the remaining ones", async () => {
  const send = await start({ address: both.address })
  const paths = ["/cross_bridge", "/nowhere", "/mailboxes", "/openapi.json", "/"]
  const left: Array<string> = []
  for (const [n, path] of paths.entries()) {
    const answered = await send("GET", path, { headers: { "X-Forwarded-For": `10.0.0.${n}` } })
    expect(answered.status).not.toBe(429)
    expect(answered.header("ratelimit-policy")).toBe(`"address";q=${addressQuota};w=3600`)
    left.push(answered.header("ratelimit").split(";")[1] ?? "")
  }
  expect(left).toEqual(["r=4", "r=3", "r=2", "r=1", "r=0"])
  const forwarded = { headers: { "X-Forwarded-For": "10.0.0.99", Forwarded: "for=10.0.0.98" } }
  expectRefusal(await send("GET", "/cross_bridge", forwarded), "address", addressQuota, clientsHere)
  const published = await send("POST", "/content", { body: "x" })
  expectRefusal(published, "address", addressQuota, clientsHere)
  const json = await send("GET", "/cross_bridge", { accept: "application/json" })
  expect(json.json).toMatchObject({ status: 429, "violated-policies": ["address"] })
  expect((await send("GET", "/livez")).status).toBe(200)
  expect(service.services[0]?.httpMetrics.rateLimited).toEqual({ address: 3, account: 0 })
})

it("hold on the hot path too, and what was refused is not there", async () => {
  const admin = { basic: `admin:${adminToken}` }
  const limited = await start({ address: both.address })
  const created = await limited("POST", "/mailboxes", { ...admin, headers: { Slug: "box" } })
  expect(created.status).toBe(201)
  const statuses: Array<number> = []
  for (let n = 0; n < addressQuota + 2; n += 1) {
    const body = `<notification><item><description>${n}</description>` +
      "<url>http://example.org/</url></item></notification>"
    statuses.push((await limited("POST", "/mailboxes/box", { body })).status)
  }
  expect(statuses).toEqual([202, 202, 202, 202, 429, 429, 429])
  const listed = await limited("GET", "/mailboxes/box", admin)
  expect(listed.text.match(/<notification /g)).toHaveLength(4)
})

it("count an account separately from its neighbors and from guesses of its token", async () => {
  const send = await start(both)
  const admin = { basic: `admin:${adminToken}` }
  // A node cannot know the account of a token that it has not verified: it counts for the address.
  expect((await send("GET", "/mailboxes", admin)).header("ratelimit")).toMatch(/^"address";r=4/)
  for (let n = 1; n <= accountQuota; n += 1) {
    const answered = await send("GET", "/mailboxes", admin)
    expect(answered.header("ratelimit")).toMatch(new RegExp(`^"account";r=${accountQuota - n};`))
  }
  for (const path of ["/mailboxes", "/cross_bridge"]) {
    expectRefusal(await send("GET", path, admin), "account", accountQuota, "the account admin")
  }
  expect((await send("GET", "/cross_bridge")).header("ratelimit")).toMatch(/^"address";r=3/)
  const guess = await send("GET", "/mailboxes", { basic: "admin:guess" })
  expect([guess.status, guess.header("ratelimit").slice(0, 13)]).toEqual([401, "\"address\";r=2"])
})

it("count clients behind a trusted proxy one by one", async () => {
  const send = await start({ address: both.address }, { trustedProxies: ["127.0.0.0/8"] })
  const from = (client: string) => ({ headers: { "X-Forwarded-For": client } })
  for (let n = 0; n < addressQuota; n += 1) {
    expect((await send("GET", "/cross_bridge", from("198.51.100.1"))).status).toBe(200)
  }
  expect((await send("GET", "/cross_bridge", from("198.51.100.1"))).status).toBe(429)
  // A network counts as one, and another network is not affected.
  expect((await send("GET", "/cross_bridge", from("198.51.100.2"))).status).toBe(429)
  expect((await send("GET", "/cross_bridge", from("198.51.101.2"))).status).toBe(200)
})

it("do not hold for clients on this machine", async () => {
  await start(both)
  for (let n = 0; n < 2 * addressQuota; n += 1) {
    const answered = await service.send("GET", "/cross_bridge")
    expect([answered.status, answered.headers.has("ratelimit")]).toEqual([200, false])
  }
})

it("are none where the operator wants none", async () => {
  const send = await start({})
  for (let n = 0; n < 50; n += 1) {
    const answered = await send("GET", "/cross_bridge")
    expect([answered.status, answered.headers.has("ratelimit")]).toEqual([200, false])
  }
  expect(service.services.every(({ rateLimiter }) => rateLimiter === undefined)).toBe(true)
})
