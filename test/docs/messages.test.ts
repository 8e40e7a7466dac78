/** Requests, answers and documents that pages show alone: sent to a service, or by one. */
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { textOf } from "../../http/formats/xml/index.ts"
import { resourceTable } from "../../http/resource-table.ts"
import { decryptPush, newBrowser } from "../actors/web-push.ts"
import { adminToken, type Answered, type Harness, startService } from "../http/harness.ts"
import { issuers, makeKey, seconds, startKeyServer, tokenOf } from "../http/issuer-harness.ts"
import { blocksOf } from "./pages.ts"
import { patternOf } from "./transcript.ts"

const withinMs = 60_000
const admin = `admin:${adminToken}`
const asJson = { type: "application/json", accept: "application/json" }

let service: Harness
/** A token of the issuer that has expired. */
let expired = ""
const ends: Array<() => Promise<void>> = []

beforeAll(async () => {
  const key = await makeKey("first")
  const keys = await startKeyServer()
  await keys.serve(200, [key])
  const vouching = issuers({ AUTH_JWKS: keys.url })
  service = await startService(resourceTable, {}, { adminToken }, vouching.make)
  expired = await tokenOf(key, { exp: seconds(-3_600) })
  ends.push(service.close, vouching.close, keys.close)
})
afterAll(async () => {
  for (const end of ends) await end()
})

/** The blocks of a language on a page. */
const shown = (page: string, language: string): ReadonlyArray<string> =>
  blocksOf(page).filter((block) => block.language === language).map(({ text }) => text.trim())

const post = (path: string, body: object | string): Promise<Answered> =>
  service.send("POST", path, {
    basic: admin,
    body: typeof body === "string" ? body : JSON.stringify(body),
    ...asJson
  })

const bearer = (token: string) => ({ headers: { Authorization: `Bearer ${token}` } })

/** The header field that a page shows, as its name and its value. */
const fieldOf = (text: string): readonly [name: string, value: string] => {
  const at = text.indexOf(": ")
  return [text.slice(0, at), text.slice(at + 2)]
}

describe("docs/identity.md", () => {
  const [refusal = "", expiry = ""] = shown("docs/identity.md", "http")

  it("has a body that makes a token with this name, scope and time", async () => {
    expect((await post("/accounts", { name: "alice" })).status).toBe(201)
    const [body = ""] = shown("docs/identity.md", "json")
    const made = await post("/accounts/alice/token", body)
    expect(made.status).toBe(201)
    const listed = await service.send("GET", "/accounts/alice/tokens", { basic: admin, ...asJson })
    const { expires, ...asked } = JSON.parse(body)
    expect(expires).toBe("P90D")
    const found = [listed.json].flatMap((one) => JSON.stringify(one).match(/\{[^{}]*"ci"[^{}]*\}/))
    const token = JSON.parse(found[0] ?? "{}")
    expect(token).toMatchObject(asked)
    const days = (Date.parse(token.expires) - Date.parse(token.created)) / (24 * 3_600_000)
    expect(days).toBeCloseTo(90)
  })

  it("shows the answer to a token without the scope", async () => {
    expect((await post("/mailboxes", { name: "scoped" })).status).toBe(201)
    const made = await service.send("POST", "/accounts/admin/token", {
      basic: admin,
      body: "<token scope=\"deposit\"/>"
    })
    expect(made.status).toBe(201)
    const refused = await service.send("GET", "/mailboxes/scoped", bearer(textOf(made.xml)))
    const [name, value] = fieldOf(refusal)
    expect([refused.status, refused.header(name)]).toEqual([403, value])
  })

  it("shows the answer to a token of an issuer that has expired", async () => {
    const refused = await service.send("GET", "/mailboxes", bearer(expired))
    const [name, value] = fieldOf(expiry)
    expect(refused.status).toBe(401)
    expect(refused.header(name)).toContain(value)
  })
})

describe("docs/queries.md", () => {
  it("has a request that finds who is old enough, by these fields", async () => {
    for (const [name, age] of [["Sir Bors", 44], ["Dinadan", 19]] as const) {
      expect((await post("/customers", { name, age, country: "UK" })).status).toBe(201)
    }
    const [request = ""] = shown("docs/queries.md", "http")
    const [method = "", path = ""] = request.split(" ")
    const found = await service.send(method, path, { basic: admin, ...asJson })
    expect(found.status).toBe(200)
    const text = JSON.stringify(found.json)
    expect(text).toMatch(/"name":"Sir Bors","age":"?44"?/)
    expect(text).not.toMatch(/Dinadan|country/)
  })
})

describe("docs/interoperation.md", () => {
  it("shows what a service worker gets", async () => {
    const pushes: Array<Buffer> = []
    const server = createServer((request, response) => {
      const chunks: Array<Buffer> = []
      request.on("data", (chunk: Buffer) => void chunks.push(chunk))
      request.on("end", () => {
        pushes.push(Buffer.concat(chunks))
        response.writeHead(201).end()
      })
    })
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
    ends.push(async () => void server.close())
    // The address of a TCP server is an object.
    const { port } = server.address() as AddressInfo
    const browser = await newBrowser()
    const { auth, p256dh } = browser
    expect((await post("/mailboxes", { name: "alice" })).status).toBe(201)
    const subscription = { endpoint: `http://127.0.0.1:${port}/push/1`, keys: { p256dh, auth } }
    expect((await post("/mailboxes/alice/registrations", subscription)).status).toBe(201)
    const item = { description: "Tea is ready", url: "http://sender.test/" }
    expect((await post("/mailboxes/alice", { item })).status).toBe(202)
    await expect.poll(() => pushes.length, { timeout: withinMs }).toBe(1)
    const document = JSON.parse(await decryptPush(browser, pushes[0] ?? Buffer.alloc(0)))

    const [json = ""] = shown("docs/interoperation.md", "json")
    const timeless = (text: string) =>
      text.replace(/\d{4}-[\dT:.-]+Z/g, (time) => time.replace(/\d/g, "0"))
    const written = timeless(JSON.stringify(document, null, 2))
      .replaceAll(service.base, "https://post.example.org")
      .replace(/notifications\/\d+-/, "notifications/3-")
    expect(written).toMatch(patternOf(timeless(json)))
  })
})
