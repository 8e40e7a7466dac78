/** Requests whose responses are lost, transient refusals, or late. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { afterAll, beforeAll, expect, it } from "vitest"
import { type Client, connect, ConnectionError, NotFound, ProblemError, TooManyRequests,
  Unavailable, UnexpectedAnswer, Unprocessable } from "../../client/index.ts"
import { backoffMsFirst, backoffMsMax } from "../../client/limits.ts"
import { linkOf } from "../../client/transport/pages.ts"
import { backoffMs, retryAfterMs } from "../../client/transport/transport.ts"
import { startCutting } from "./cutting.ts"
import { all, type Here, rejection, startHere } from "./services.ts"

let here: Here
let port = 0
let admin: Client
beforeAll(async () => {
  here = await startHere()
  port = here.port
  admin = here.admin
})
afterAll(() => here.close())

/** A fake service. */
const answering = async (
  answer: (request: IncomingMessage, response: ServerResponse, n: number) => void
) => {
  let n = 0
  const server = createServer((request, response) => answer(request, response, n++))
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const { port } = server.address() as AddressInfo // a TCP server's address is an object
  const url = `http://127.0.0.1:${port}`
  return {
    url,
    client: connect({ url, account: "a", token: "t" }),
    requestCount: () => n,
    close: () => {
      server.closeAllConnections()
      server.close()
    }
  }
}

it("creates nothing twice when a response is lost", async () => {
  // The first response does not arrive at all, the second is cut in its header block.
  const cutting = await startCutting(() => port, (n) => [0, 100][n] ?? Infinity)
  const cut = here.asAdmin(cutting.url)
  const { href, mailbox, password } = await cut.openMailbox({ name: "once" })
  expect(cutting.connections()).toBe(3)
  expect((await admin.mailbox("once", { password }).read()).href).toBe(href)
  const through = async <A>(request: (client: Client) => Promise<A>): Promise<A> => {
    const lossy = await startCutting(() => port, (n) => n === 0 ? 0 : Infinity)
    const result = await request(here.asAdmin(lossy.url))
    expect(lossy.connections()).toBe(2)
    lossy.close()
    return result
  }
  const input = { description: "once", url: "http://sender.test/" }
  await through((client) => client.mailbox(href).deposit(input))
  const sent = await through((client) => client.send({ to: href, ...input, description: "sent" }))
  await admin.outgoing.sent(sent.href).wait()
  expect((await mailbox.read()).notifications.map(({ description }) => description))
    .toEqual(["once", "sent"])
  expect(await all(admin.outgoing.list())).toHaveLength(1)
  const { registration } = await through((client) =>
    client.mailbox(href).register({ callback: "http://127.0.0.1:9/" })
  )
  expect((await mailbox.registrations()).map((one) => one.href)).toEqual([registration.href])
  await through((client) => client.mailbox(href).delete())
  await admin.queries.setQuote("ONCE", { amount: "1", currency: "EUR" })
  await through((client) => client.queries.removeQuote("ONCE"))
  expect(await rejection(admin.queries.removeQuote("NEVER"))).toBeInstanceOf(NotFound)
  cutting.close()
})

it("resends only a body that it can create again", async () => {
  const lossy = () => startCutting(() => port, (n) => n === 0 ? 0 : Infinity)
  const stream = () => new Blob(["streamed"]).stream()
  const [first, second] = [await lossy(), await lossy()]
  const { href } = await here.asAdmin(first.url).publish(stream)
  expect(await (await admin.get(href)).response.text()).toBe("streamed")
  const lost = await rejection(here.asAdmin(second.url).publish(stream()))
  expect(lost).toBeInstanceOf(ConnectionError)
  expect(lost).toMatchObject({ attempts: 1 })
  for (const one of [first, second]) one.close()
})

it("waits for the time in Retry-After, then retries", async () => {
  const answers = [503, 429, 200]
  const { client, close, requestCount } = await answering((_, response, n) => {
    response.writeHead(answers[n] ?? 500, { "retry-after": "0" })
    response.end("{\"session\":[]}")
  })
  expect(await all(client.sessions())).toEqual([])
  expect(requestCount()).toBe(3)
  close()
})

it("does not wait longer than its limit, but reports the time", async () => {
  const { client, close, requestCount } = await answering((_, response) => {
    response.writeHead(429, {
      "retry-after": "86400",
      "content-type": "application/problem+json"
    })
    response.end(JSON.stringify({ type: "http://x.test/p", title: "Slow", status: 429, left: 0 }))
  })
  const refused = await rejection(all(client.sessions()))
  expect(refused).toBeInstanceOf(TooManyRequests)
  expect(refused).toMatchObject({
    message: "429 Slow",
    type: "http://x.test/p",
    retryAfterMs: 86_400_000,
    extensions: { left: 0 }
  })
  expect(requestCount()).toBe(1)
  close()
})

it("gives up after its attempts", async () => {
  const { client, close, requestCount } = await answering((_, response) => {
    response.writeHead(503, { "retry-after": "0" }).end("<p>sorry</p>")
  })
  const refused = await rejection(client.mailbox("x").read())
  expect(refused).toBeInstanceOf(Unavailable)
  expect(refused).toMatchObject({ status: 503, title: "Service Unavailable", type: "about:blank" })
  expect(requestCount()).toBe(5)
  close()
})

it("repeats neither a refused request nor one with a failed condition", async () => {
  const refusing = await answering((_, response) => response.writeHead(500).end())
  expect(await rejection(refusing.client.remove("/content/x"))).toMatchObject({ status: 500 })
  expect(refusing.requestCount()).toBe(1)
  const dropping = await answering((_, response) => response.destroy())
  const conditional = dropping.client.remove("/content/x", { ifMatch: "\"a\"" })
  const lost = await rejection(conditional)
  expect(lost).toBeInstanceOf(ConnectionError)
  expect(String(lost)).toMatch(/the outcome of DELETE .*\/content\/x is unknown: read it/)
  expect(dropping.requestCount()).toBe(1)
  for (const one of [refusing, dropping]) one.close()
})

/** A service that refuses the first request like this, and accepts later ones. */
const refusingOnce = (status: number, type = "about:blank") =>
  answering((_, response, n) => {
    const headers = { "retry-after": "0", "content-type": "application/problem+json" }
    if (n > 0) response.writeHead(204).end()
    else response.writeHead(status, headers).end(JSON.stringify({ type, title: "T", status }))
  })

const storage = "http://post.test/problems/storage-unavailable"

it.each<[number, string?]>([[408], [502], [503], [504], [503, storage]])(
  "does not repeat a change that may be done and cannot be repeated: %s %s",
  async (status, type) => {
    const change = (client: Client) => client.remove("/content/x~s3cr3t", { ifMatch: "\"a\"" })
    const unkeyed = (client: Client) => client.request({ method: "POST", uri: "/content/x~s3cr3t" })
    const capital = (client: Client) =>
      client.request({ method: "DELETE", uri: "/content/x~s3", headers: { "If-Match": "\"a\"" } })
    for (const request of [change, unkeyed, capital]) {
      const { client, close, requestCount } = await refusingOnce(status, type)
      const failed = await rejection(request(client))
      expect(failed).toMatchObject({ status, isIndeterminate: true })
      expect(String(failed)).toMatch(/\/content\/x~….* is unknown: read it before .* again$/)
      expect(requestCount()).toBe(1)
      close()
    }
    const { client, close, requestCount } = await refusingOnce(status, type)
    await client.remove("/content/x")
    expect(requestCount()).toBe(2)
    close()
  }
)

const problemType = (slug: string) => `http://post.test/problems/${slug}`

it.each<[number, string?]>([
  [425],
  [429],
  [408, problemType("request-timeout")],
  [503, problemType("overloaded")],
  [503, problemType("quarantined")],
  [503, problemType("issuer-unavailable")]
])("repeats any change that was certainly not made: %s %s", async (status, type) => {
  const { client, close, requestCount } = await refusingOnce(status, type)
  await client.remove("/content/x", { ifMatch: "\"a\"" })
  expect(requestCount()).toBe(2)
  close()
})

it("says of a problem whether the service may have carried out the request", () => {
  const problem = (status: number, retryAfterMs?: number) =>
    new ProblemError({ status, title: "T", retryAfterMs }).isIndeterminate
  expect([400, 404, 412, 422, 425, 429].map((status) => problem(status))).not.toContain(true)
  expect([408, 500, 502, 503, 504, 507].map((status) => problem(status))).not.toContain(false)
  // Another attempt with the same Idempotency-Key is in progress.
  expect([problem(409), problem(409, 1_000)]).toEqual([false, true])
})

it("says so also of a refusal that follows an attempt with an unknown outcome", async () => {
  for (const [first, isIndeterminate] of [[503, true], [429, false]] as const) {
    const { client, close } = await answering((_, response, n) => {
      response.writeHead(n === 0 ? first : 422, { "retry-after": "0" }).end()
    })
    const headers = { "idempotency-key": "\"k\"" }
    const failed = await rejection(client.request({ method: "POST", uri: "/content", headers }))
    expect(failed).toMatchObject({ status: 422, isIndeterminate })
    expect(failed).toBeInstanceOf(Unprocessable)
    close()
  }
})

it("ends an attempt or a pause by the signal, with the signal's reason", async () => {
  const reason = new Error("enough")
  const hanging = await answering(() => {})
  const waiting = await answering((_, response) => {
    response.writeHead(503, { "retry-after": "30" }).end()
  })
  for (const { client, close, requestCount } of [hanging, waiting]) {
    const stop = new AbortController()
    const ended = rejection(client.mailbox("x").read({ signal: stop.signal }))
    while (requestCount() === 0) await new Promise((resolve) => setTimeout(resolve, 5))
    stop.abort(reason)
    expect(await ended).toBe(reason)
    close()
  }
})

it("rejects the response of another program", async () => {
  const answers = ["{", "[]", "{}", "{\"href\":1,\"time\":{}}"]
  for (const text of answers) {
    const { client, close } = await answering((_, response) => response.end(text))
    expect(await rejection(client.mailbox("x").read())).toBeInstanceOf(UnexpectedAnswer)
    expect(await rejection(client.publish("x"))).toBeInstanceOf(UnexpectedAnswer)
    close()
  }
})

it("follows a redirect only without a password", async () => {
  const seen: Array<string | undefined> = []
  const there = await answering((request, response) => {
    seen.push(request.headers["message-password"]?.toString())
    response.end("there")
  })
  const leading = await answering((_, response) => {
    response.writeHead(302, { location: there.url }).end()
  })
  const client = here.asAdmin(leading.url, { attempts: 1 })
  const password = "0123456789abcdef"
  expect(await rejection(client.get("/content/x", { password }))).toBeInstanceOf(ConnectionError)
  expect(await (await client.get("/content/x")).response.text()).toBe("there")
  expect(seen).toEqual([undefined])
  for (const one of [leading, there]) one.close()
})

it("removes secrets of URIs from messages", async () => {
  const nobody = connect({ url: "http://127.0.0.1:9", attempts: 1 })
  const lost = await rejection(nobody.mailbox("/mailboxes/alice~s3cr3t").read())
  expect(String(lost)).toContain("alice~")
  expect(String(lost)).not.toContain("s3cr3t")
})

it("rejects invalid options", () => {
  const token = "t"
  for (
    const options of [
      { url: "post.example" },
      { url: "ftp://post.example" },
      { url: "http://a:b@post.example" },
      { url: "http://post.example", account: "a" },
      { url: "http://post.example", account: "a:b", token },
      { url: "http://post.example", attempts: 0 }
    ]
  ) expect(() => connect(options)).toThrow(TypeError)
})

it("reads both forms of Retry-After, and increases its pauses up to a limit", () => {
  const nowMs = Date.parse("2030-01-01T00:00:00Z")
  expect(retryAfterMs("7", nowMs)).toBe(7000)
  expect(retryAfterMs("Tue, 01 Jan 2030 00:01:00 GMT", nowMs)).toBe(60_000)
  expect(retryAfterMs("Mon, 31 Dec 2029 00:00:00 GMT", nowMs)).toBe(0)
  expect([retryAfterMs("soon", nowMs), retryAfterMs(null, nowMs)]).toEqual([undefined, undefined])
  for (let n = 1; n < 50; n++) {
    const fullMs = Math.min(backoffMsFirst * 2 ** (n - 1), backoffMsMax)
    const ms = backoffMs(n)
    expect(ms >= fullMs / 2 && ms <= fullMs).toBe(true)
  }
})

it("reads Link fields", () => {
  const field = "</a>; rel=\"hub\", <http://x.test/?a=1,2;b>; title=\"a, \\\"b\\\"; rel=next\"; " +
    "rel=\"self next\", <c>;rel=edit"
  expect(["hub", "next", "edit", "prev"].map((rel) => linkOf(field, rel)))
    .toEqual(["/a", "http://x.test/?a=1,2;b", "c", undefined])
  expect(linkOf(null, "next")).toBeUndefined()
})
