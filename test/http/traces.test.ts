/** The spans of requests, commits, relays and pushes: their parents, and what they do not hold. */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type RecordedSpan, spanRecorder } from "../runtime/span-recorder.ts"
import { notification, owner, startMailboxes } from "./mailbox-harness.ts"
import { outgoing } from "./outgoing-harness.ts"
import { eventually, isActive, type Registrations, startRegistrations, startSubscriber,
  type Subscriber } from "./registrations-harness.ts"

const recorder = spanRecorder()
let service: Registrations
let subscriber: Subscriber

beforeAll(async () => {
  service = await startRegistrations(undefined, { traces: recorder })
  subscriber = await startSubscriber()
})
afterAll(async () => {
  await service.close()
  await subscriber.close()
})

/** The trace context of a client, with a trace of its own for each test. */
const traceparentAt = (test: number): string => `00-${"ab".repeat(15)}0${test}-${"cd".repeat(8)}-01`

/** The spans of the trace of a `traceparent`. */
const spansOf = (traceparent: string): ReadonlyArray<RecordedSpan> =>
  recorder.spans.filter((one) => one.traceparent.slice(3, 35) === traceparent.slice(3, 35))

const named = (spans: ReadonlyArray<RecordedSpan>, name: string): ReadonlyArray<RecordedSpan> =>
  spans.filter((one) => one.name === name)

/** Whether a span is below another one; between nodes there are spans of asks. */
const isBelow = ({ parent }: RecordedSpan, other: RecordedSpan): boolean => {
  if (parent === undefined || parent === other.traceparent) return parent !== undefined
  const above = recorder.spans.find(({ traceparent }) => traceparent === parent)
  return above !== undefined && isBelow(above, other)
}

/** The only span of this name in a trace. */
const only = (spans: ReadonlyArray<RecordedSpan>, name: string): RecordedSpan => {
  const [one, ...more] = named(spans, name)
  if (one === undefined || more.length > 0) {
    throw new Error(`${more.length} more spans ${name} of ${spans.map((span) => span.name).join()}`)
  }
  return one
}

describe("the span of a request", () => {
  it("is on the direct path of deposits, too, with the commit below it", async () => {
    const traceparent = traceparentAt(1)
    const { href } = await service.open("direct")
    const body = notification("on the direct path")
    const deposited = await service.send("POST", href, { body, headers: { traceparent } })
    expect(deposited.status).toBe(202)
    const spans = spansOf(traceparent)
    const request = only(spans, "POST /mailboxes/{mailbox}")
    expect(request).toMatchObject({
      kind: "server",
      parent: traceparent,
      error: undefined,
      attributes: {
        "http.request.method": "POST",
        "url.scheme": "http",
        "http.route": "/mailboxes/{mailbox}",
        "url.path": "/mailboxes/direct",
        "http.response.status_code": 202
      }
    })
    expect(isBelow(only(spans, "commit mailbox"), request)).toBe(true)
  })

  it("begins a trace if there is none, and is absent if the client's is not sampled", async () => {
    const before = recorder.spans.length
    expect((await service.send("GET", "/livez")).status).toBe(200)
    expect(named(recorder.spans.slice(before), "GET /livez"))
      .toEqual([expect.objectContaining({ parent: undefined, kind: "server" })])
    const traceparent = traceparentAt(2).replace(/01$/, "00")
    expect((await service.send("GET", "/livez", { headers: { traceparent } })).status).toBe(200)
    expect(spansOf(traceparent)).toEqual([])
  })

  it("has neither route nor path where the service has none, and no error below 500", async () => {
    const traceparent = traceparentAt(3)
    const headers = { traceparent }
    expect((await service.send("GET", "/no/such~secret-0123456789", { headers })).status).toBe(404)
    expect((await service.send("DELETE", "/livez", { headers })).status).toBe(405)
    expect((await service.send("OPTIONS", "/livez", { headers })).status).toBe(204)
    const spans = spansOf(traceparent)
    expect(spans.map(({ attributes, error, name }) => [name, attributes["url.path"], error]))
      .toEqual([
        ["GET", undefined, undefined],
        ["DELETE /livez", "/livez", undefined],
        ["OPTIONS /livez", "/livez", undefined]
      ])
    expect(spans.map(({ attributes }) => attributes["http.response.status_code"]))
      .toEqual([404, 405, 204])
  })

  it("is not recorded for a request over a rate limit", async () => {
    const traces = spanRecorder()
    const rateLimits = { address: { quota: 1, windowMs: 60_000 } }
    const limited = await startMailboxes(undefined, {
      traces,
      rateLimits,
      trustedProxies: ["127.0.0.1"]
    })
    try {
      const before = traces.spans.length
      const headers = { "X-Forwarded-For": "203.0.113.7" }
      const statuses: Array<number> = []
      // Each node counts for itself, and not the probes of orchestrators.
      while (!statuses.includes(429)) {
        statuses.push((await limited.send("GET", "/problems", { headers })).status)
      }
      const spans = traces.spans.slice(before)
      expect(spans.map(({ attributes }) => attributes["http.response.status_code"]))
        .toEqual(statuses.filter((status) => status !== 429))
    } finally {
      await limited.close()
    }
  })
})

it("no span has a secret: of a URI, a header, a query or a body", async () => {
  const opened = await service.open("secretive")
  const secret = opened.shared.split("~")[1] ?? ""
  expect(secret.length).toBeGreaterThan(10)
  const body = "<notification><item><description>the-text-of-it</description>" +
    "<url>http://example.org/m</url><password>the-message-password</password></item></notification>"
  expect((await service.send("POST", opened.href, { body })).status).toBe(202)
  expect((await service.send("GET", `${opened.shared}?q=the-searched-text`)).status).toBe(200)
  const byPassword = await service.send("GET", opened.href, { basic: `x:${opened.password}` })
  expect(byPassword.status).toBe(200)
  const listed = await service.send("GET", opened.href, { basic: owner })
  const [, id = ""] = /secretive\/notifications\/([^"/?]+)/.exec(listed.text) ?? []
  expect(id.length).toBeGreaterThan(10)
  const read = await service.send("GET", `${opened.href}/notifications/${id}`, { basic: owner })
  expect(read.status).toBe(200)
  // Whoever knows the drawn name of a mailbox may deposit there.
  const unnamed = await service.send("POST", "/mailboxes", { basic: owner, body: "<mailbox/>" })
  expect(unnamed.status).toBe(201)
  const drawn = unnamed.header("location").split("/").at(-1) ?? ""
  expect(drawn).toMatch(/^[0-9a-f]{32}$/)
  const toDrawn = await service.deposit(`/mailboxes/${drawn}`, "for the drawn name")
  expect(toDrawn.status).toBe(202)
  const text = JSON.stringify(recorder.spans)
  expect(text).toContain("/mailboxes/secretive")
  const secrets = [drawn, secret, opened.password, owner.split(":")[1] ?? "", id, "the-text-of-it"]
  for (const one of [...secrets, "the-message-password", "the-searched-text"]) {
    expect([one.length > 5, text.includes(one)], one).toEqual([true, false])
  }
})

it("the span of a relay is below that of the request, and above what it sends", async () => {
  const traceparent = traceparentAt(4)
  const { href } = await service.open("relayed")
  const callback = `${subscriber.at("echo")}?token=secret-of-the-recipient`
  const sent = await service.send("POST", "/outgoing/admin", {
    basic: owner,
    body: outgoing([href, callback]),
    headers: { traceparent }
  })
  expect(sent.status).toBe(202)
  const relays = await eventually(
    () => named(spansOf(traceparent), "relay"),
    ({ length }) => length === 2
  )
  const spans = spansOf(traceparent)
  const request = only(spans, "POST /outgoing/{account}")
  expect(relays).toEqual(relays.map(() =>
    expect.objectContaining({
      parent: request.traceparent,
      error: undefined,
      attributes: { "restante.attempt": 1, "restante.outcome": "Delivered" }
    })
  ))
  const hop = only(spans, "POST")
  expect(hop.kind).toBe("client")
  expect(relays.map((relay) => relay.traceparent)).toContain(hop.parent)
  expect(hop.attributes).toEqual({
    "http.request.method": "POST",
    "server.address": "127.0.0.1",
    "server.port": Number(new URL(callback).port),
    "http.response.status_code": 204
  })
  expect(subscriber.pushes(callback).map(({ headers }) => headers["traceparent"]))
    .toEqual([hop.traceparent])
  const [stored] = named(spans, "commit mailbox")
  if (stored === undefined) throw new Error("no commit of the mailbox here")
  expect(relays.filter((relay) => isBelow(stored, relay))).toHaveLength(1)
  expect(JSON.stringify(spans)).not.toContain("secret-of-the-recipient")
})

it("a push begins a trace, which its receiver continues", async () => {
  const { href } = await service.open("pushed")
  const callback = subscriber.at("echo")
  const registered = await service.register(href, callback)
  await service.until(registered.header("location"), isActive)
  expect((await service.deposit(href, "for the subscriber")).status).toBe(202)
  const [pushed] = await eventually(
    () => subscriber.pushes(callback),
    ({ length }) => length > 0
  )
  const traceparent = String(pushed?.headers["traceparent"])
  const spans = await eventually(
    () => spansOf(traceparent),
    (found) => named(found, "push").length > 0
  )
  const push = only(spans, "push")
  expect(push).toMatchObject({
    parent: undefined,
    error: undefined,
    attributes: { "restante.registration.form": "native", "restante.outcome": "Delivered" }
  })
  expect(only(spans, "POST")).toMatchObject({ parent: push.traceparent, traceparent })
})
