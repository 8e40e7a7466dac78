/** Rules for every resource (protocol §0): keyed requests, other sites, failures. */
import { Effect } from "effect"
import { request } from "node:http"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { element } from "../../http/formats/xml/index.ts"
import { type ResourceHandler, viewAnswer } from "../../http/pipeline/call.ts"
import { countRequest, HttpMetrics } from "../../http/pipeline/http-metrics.ts"
import type { Route } from "../../http/pipeline/routing.ts"
import type { Service } from "../../http/pipeline/service.ts"
import { resourceTable } from "../../http/resource-table.ts"
import { makeMetricsText } from "../../http/resources/observability/prometheus-text.ts"
import { ActorDefect, AskTimeout, NoOwner, Overloaded, Quarantined, StorageCorrupted, StorageFull,
  StorageUnavailable } from "../../runtime/index.ts"
import { adminToken, type Harness, startService } from "./harness.ts"

const basic = `admin:${adminToken}`
let service: Harness
let release: (() => void) | undefined

const key = "k"
const failures = {
  overloaded: new Overloaded({ key, retryAfterMs: 2500 }),
  owner: new NoOwner({ key, retryAfterMs: 10 }),
  quarantined: new Quarantined({ key, retryAfterMs: 60_000 }),
  full: new StorageFull({ detail: "secret path" }),
  unavailable: new StorageUnavailable({ detail: "secret path" }),
  corrupted: new StorageCorrupted({ detail: "secret path" }),
  timeout: new AskTimeout({ key, deadlineMs: 1 }),
  defect: new ActorDefect({ key })
}

/** The routes about accounts or the operator's business. */
const guardedPatterns: ReadonlyArray<string> = [
  "/accounts",
  "/accounts/{account}",
  "/accounts/{account}/browser-sessions",
  "/accounts/{account}/browser-sessions/{browserSession}",
  "/accounts/{account}/export",
  "/accounts/{account}/token",
  "/accounts/{account}/tokens",
  "/accounts/{account}/tokens/{token}",
  "/admin",
  "/archive",
  "/audit",
  "/audit/chain",
  "/blocks",
  "/blocks/{block}",
  "/cluster",
  "/cluster/actors/{kind}",
  "/cluster/actors/{kind}/{id}",
  "/cluster/history",
  "/cluster/messages",
  "/cluster/quarantine/{kind}/{id}",
  "/content",
  "/limits",
  "/livez",
  "/mailboxes/{mailbox}/blocks",
  "/mailboxes/{mailbox}/blocks/{block}",
  "/mailboxes/{mailbox}/notifications/{notification}/depositor",
  "/mailboxes/{mailbox}/notifications/{notification}/report",
  "/metrics",
  "/readyz",
  "/reports",
  "/reports/{report}",
  "/settings",
  "/sign-in",
  "/sign-out"
]

/** The real resources, one that fails as requested, and one that waits for a release. */
const routes = (shared: Service): ReadonlyArray<Route<ResourceHandler>> => [
  ...resourceTable(shared),
  ...Object.entries(failures).map(([name, failure]): Route<ResourceHandler> => ({
    pattern: `/test/${name}`,
    methods: { GET: { handle: () => Effect.fail(failure) } }
  })),
  { pattern: "/test/broken", methods: { GET: { handle: () => Effect.die("boom") } } },
  {
    pattern: "/test/waiting",
    methods: {
      POST: {
        handle: (call) =>
          Effect.as(
            Effect.promise(() =>
              new Promise<void>((resolve) => {
                release = resolve
              })
            ),
            viewAnswer({ title: "done", tree: element("done", { id: call.ids.id("x") }) }, {
              status: 201
            })
          )
      }
    }
  }
]

beforeAll(async () => {
  service = await startService(routes)
})
afterAll(() => service.close())

const send: Harness["send"] = (...request) => service.send(...request)

describe("Idempotency-Key", () => {
  const keyed = (name: string, body: string) => ({
    basic,
    body,
    headers: { "Idempotency-Key": name }
  })

  it("creates one mailbox, and shows the same secrets again", async () => {
    const body = "<mailbox><title>Keyed</title></mailbox>"
    const first = await send("POST", "/mailboxes", keyed("a", body))
    const repeated = await send("POST", "/mailboxes", keyed("\"a\"", body))
    expect([first.status, repeated.status]).toEqual([201, 201])
    expect(repeated.text).toBe(first.text)
    expect(repeated.header("location")).toBe(first.header("location"))
    expect(first.child("password")).toMatch(/^[A-Za-z0-9_-]{43}$/)
  })

  it("refuses another body with 422, and lets a failed request be mended", async () => {
    const wrong = await send(
      "POST",
      "/mailboxes",
      keyed("b", "<mailbox><name>B AD</name></mailbox>")
    )
    expect(wrong.status).toBe(422)
    const right = "<mailbox><name>bad-no-more</name></mailbox>"
    expect((await send("POST", "/mailboxes", keyed("b", right))).status).toBe(201)
    const other = await send("POST", "/mailboxes", keyed("b", "<mailbox><name>c</name></mailbox>"))
    expect([other.status, other.child("type")])
      .toEqual([422, `${service.base}/problems/idempotency-key-reuse`])
  })

  it("is each caller's own", async () => {
    const deposit = "<notification><item><description>d</description><url>http://x/</url></item>" +
      "</notification>"
    await send("POST", "/mailboxes", { basic, headers: { Slug: "keyed-own" } })
    const key = "the-same-key-of-two-clients"
    const one = await send("POST", "/mailboxes/keyed-own", keyed(key, deposit))
    const { basic: _, ...anonymous } = keyed(
      key,
      deposit.replace("<description>d", "<description>e")
    )
    const two = await send("POST", "/mailboxes/keyed-own", anonymous)
    expect([one.status, two.status]).toEqual([202, 202])
    expect(two.header("location")).not.toBe(one.header("location"))
  })

  it("answers 409 while the first is under way", async () => {
    const sending = { body: "<x/>", headers: { "Idempotency-Key": "the-key-of-a-slow-request" } }
    const first = send("POST", "/test/waiting", sending)
    await expect.poll(() => release).toBeDefined()
    expect((await send("POST", "/test/waiting", sending)).status).toBe(409)
    release?.()
    const answered = await first
    expect(answered.status).toBe(201)
    expect((await send("POST", "/test/waiting", sending)).text).toBe(answered.text)
  })
})

describe("failures", () => {
  const cases: ReadonlyArray<[keyof typeof failures, number, string | null]> = [
    ["overloaded", 503, "3"],
    ["owner", 503, "1"],
    ["quarantined", 503, "60"],
    ["full", 507, null],
    ["unavailable", 503, "1"],
    ["timeout", 503, "1"],
    ["corrupted", 500, null],
    ["defect", 500, null]
  ]
  it.each(cases)("%s is %i with Retry-After %s", async (name, status, retryAfter) => {
    const failed = await send("GET", `/test/${name}`)
    expect(failed.status).toBe(status)
    expect(failed.headers.get("retry-after")).toBe(retryAfter)
    expect(failed.header("content-type")).toContain("application/problem+xml")
    expect(failed.text).not.toContain("secret path")
  })

  it("a handler that breaks is 500 and the next request is served", async () => {
    const broken = await send("GET", "/test/broken", { accept: "application/json" })
    expect([broken.status, broken.header("content-type")])
      .toEqual([500, "application/problem+json"])
    expect(broken.text).not.toContain("boom")
    expect((await send("GET", "/cross_bridge")).status).toBe(200)
  })

  it("406 lists the available types", async () => {
    const refused = await send("GET", "/cross_bridge", { accept: "image/png" })
    expect(refused.status).toBe(406)
    for (const type of ["application/xml", "text/html", "application/json", "text/plain"]) {
      expect(refused.text).toContain(type)
    }
  })

  it("unknown paths and methods", async () => {
    expect((await send("GET", "/no/such/thing")).status).toBe(404)
    const method = await send("DELETE", "/cross_bridge")
    expect([method.status, method.header("allow")]).toEqual([405, "GET, HEAD, OPTIONS"])
    expect((await send("GET", "/%zz")).status).toBe(400)
  })
})

describe("pages of other sites", () => {
  /** Sends by node:http, since fetch sets the Fetch metadata fields itself. */
  const form = (headers: Record<string, string>, name: string, base = service.base) =>
    new Promise<{ readonly status: number | undefined }>((resolve, reject) => {
      const sent = request(`${base}/mailboxes`, {
        method: "POST",
        auth: basic,
        headers: { "Content-Type": "application/x-www-form-urlencoded", ...headers }
      }, (answer) => {
        answer.resume()
        answer.on("end", () => resolve({ status: answer.statusCode }))
      })
      sent.once("error", reject)
      const isJson = headers["Content-Type"] === "application/json"
      sent.end(isJson ? JSON.stringify({ name }) : `name=${name}`)
    })

  it.each<Record<string, string>>([
    { "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate" },
    { "Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "navigate" },
    { "Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "no-cors" },
    { "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "cors" },
    { "Sec-Fetch-Site": "none", Origin: "https://evil.example" },
    { "Sec-Fetch-Site": "none", Origin: "null" },
    { "Sec-Fetch-Site": "same-origin", Origin: "https://evil.example" },
    { Origin: "https://evil.example" },
    { Origin: "null" }
  ])("cannot act with a browser's credentials: %j", async (fields) => {
    for (const type of ["application/x-www-form-urlencoded", "text/plain", "application/json"]) {
      const headers = { ...fields, "Content-Type": type }
      expect((await form(headers, "forged")).status).toBe(403)
    }
    expect((await send("GET", "/mailboxes/forged", { basic })).status).toBe(404)
  })

  it("are told from the service's own", async () => {
    const own = { "Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "navigate" }
    expect((await form(own, "own-a")).status).toBe(201)
    expect((await form({ Origin: service.base }, "own-b")).status).toBe(201)
    expect((await form({ ...own, Origin: service.base }, "own-e")).status).toBe(201)
    expect((await form({ "Sec-Fetch-Site": "none" }, "own-c")).status).toBe(201)
    // A page that sends no referrer.
    expect((await form({ ...own, Origin: "null" }, "own-d")).status).toBe(201)
  })

  it("may act if the operator names their origin", async () => {
    const script = (origin: string) => ({
      "Sec-Fetch-Site": "cross-site",
      "Sec-Fetch-Mode": "cors",
      Origin: origin,
      "Content-Type": "application/json"
    })
    const named = await startService(resourceTable, { corsOrigin: "https://app.example" })
    try {
      const status = async (origin: string) =>
        (await form(script(origin), "by-script", named.base)).status
      expect(await status("https://other.example")).toBe(403)
      expect(await status("https://app.example")).toBe(201)
      // A proxy may show the service to its browsers under that origin.
      const shown = { ...script("https://app.example"), "Sec-Fetch-Site": "same-origin" }
      expect((await form(shown, "by-proxy", named.base)).status).toBe(201)
      const other = { ...script("https://other.example"), "Sec-Fetch-Site": "same-origin" }
      expect((await form(other, "by-other", named.base)).status).toBe(403)
    } finally {
      await named.close()
    }
  })

  it("learn from a preflight what CORS permits", async () => {
    const preflight = await send("OPTIONS", "/mailboxes", {
      headers: { Origin: "https://app.example", "Access-Control-Request-Method": "POST" }
    })
    expect(preflight.status).toBe(204)
    expect(preflight.header("access-control-allow-origin")).toBe("*")
    expect(preflight.header("access-control-allow-methods")).toContain("POST")
    expect(preflight.header("access-control-allow-headers")).toContain("Idempotency-Key")
    expect(preflight.headers.get("access-control-allow-credentials")).toBeNull()
    // They have no meaning in other answers (Fetch §3.3.3).
    const options = await send("OPTIONS", "/mailboxes", {
      headers: { Origin: "https://app.example" }
    })
    expect(options.header("allow")).toContain("POST")
    expect(options.headers.get("access-control-allow-methods")).toBeNull()
    expect(options.headers.get("access-control-allow-headers")).toBeNull()
    expect(options.headers.get("access-control-max-age")).toBeNull()
  })
})

it("answers 405 to a method that no resource has", async () => {
  const brewed = await send("BREW", "/mailboxes")
  expect([brewed.status, brewed.header("allow")]).toEqual([405, "GET, HEAD, POST, OPTIONS"])
  expect(await send("BREW", "/nowhere")).toMatchObject({ status: 404 })
})

describe("seeing inside", () => {
  it("/livez and /readyz report the state", async () => {
    expect((await send("GET", "/livez")).text).toBe("live\n")
    expect((await send("GET", "/readyz")).status).toBe(200)
    const unready = await startService((shared) =>
      resourceTable({ ...shared, ready: Effect.fail("the disk is full") })
    )
    try {
      expect((await unready.send("GET", "/livez")).status).toBe(200)
      const answered = await unready.send("GET", "/readyz")
      expect([answered.status, answered.child("detail")])
        .toEqual([503, "not ready: the disk is full"])
    } finally {
      await unready.close()
    }
  })

  it("/metrics is for clients on this machine, and for admins", async () => {
    const far = { headers: { "X-Forwarded-For": "203.0.113.9" } }
    expect((await send("GET", "/metrics")).status).toBe(200)
    expect((await send("GET", "/metrics", far)).status).toBe(401)
    expect((await send("GET", "/metrics", { ...far, basic })).status).toBe(200)
  })

  it("is hidden from pages of other origins, unless the operator names them", async () => {
    const named = await startService(resourceTable, { corsOrigin: "https://app.example" })
    const originOf = async (at: Harness, path: string) =>
      (await at.send("GET", path, { basic })).headers.get("access-control-allow-origin")
    try {
      const routes = resourceTable(service.service)
      const guarded = routes.filter(({ guarded }) => guarded !== undefined)
      expect(guarded.map(({ pattern }) => pattern).toSorted()).toEqual(guardedPatterns)
      for (const { guarded: methods, pattern } of guarded) {
        const path = pattern.replace("{account}", "admin").replace(/\{\w+\}/g, "none")
        expect([path, await originOf(service, path)]).toEqual([path, null])
        expect([path, await originOf(named, path)]).toEqual([path, "https://app.example"])
        const preflight = await service.send("OPTIONS", path, {
          headers: { Origin: "https://app.example", "Access-Control-Request-Method": "GET" }
        })
        // A script of another origin may publish content, and not list it.
        const allowed = methods === "all" ? null : "*"
        expect([path, preflight.headers.get("access-control-allow-origin")])
          .toEqual([path, allowed])
      }
      const published = await service.send("POST", "/content", { body: "Hello!" })
      expect(published.headers.get("access-control-allow-origin")).toBe("*")
      expect(await originOf(service, "/cross_bridge")).toBe("*")
    } finally {
      await named.close()
    }
  })

  it("/metrics has every measure, with routes as patterns", () => {
    const measures = new HttpMetrics()
    countRequest(measures.forRoute("POST", "/mailboxes/{mailbox}"), 202, 3)
    countRequest(measures.forRoute("POST", "/mailboxes/{mailbox}"), 503, 700)
    const text = makeMetricsText({
      system: service.service.system,
      httpMetrics: measures,
      nowMs: Date.now
    })()
    for (
      const line of [
        /^restante_http_requests_total\{.*route="\/mailboxes\/\{mailbox\}",.*"2xx"\} 1$/m,
        /^restante_http_request_duration_seconds_bucket\{.*le="0.005"\} 1$/m,
        /^restante_http_request_duration_seconds_bucket\{.*le="1"\} 2$/m,
        /^restante_http_request_duration_seconds_count\{.*\} 2$/m,
        /^restante_actors_active\{kind="mailbox"\} [1-9]/m,
        /^restante_actor_decisions_total\{kind="account"\} [1-9]/m,
        /^restante_actor_inbox_messages\{kind="mailbox"\} 0$/m,
        /^restante_commit_groups_total [1-9]/m,
        /^restante_commit_duration_seconds_count [1-9]/m,
        /^restante_timers \d/m
      ]
    ) expect(text).toMatch(line)
  })
})
