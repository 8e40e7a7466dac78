/** A sender of W3C Linked Data Notifications, against receivers that take nothing else. */
import { describe, expect, it } from "vitest"
import { inboxIn } from "../../../actors/outbound/discovery.ts"
import type { TextContent } from "../../../actors/outbound/protocol.ts"
import { notAllowed } from "../../../actors/outbound/problems.ts"
import { answering, client, guarded, patient, type Receiver, receiver } from "./rig.ts"

const uri = new URL("https://example.com/people/alice")

const inbox = "https://example.com/inbox"

const ld = "application/ld+json"

const rel = "http://www.w3.org/ns/ldp#inbox"

const within = (body: string, type: string, target = uri.href) =>
  inboxIn({ "content-type": type }, Buffer.from(body), uri, target)

describe("discovery (LDN §3.1)", () => {
  it.each([
    `</inbox>; rel="${rel}"`,
    `</other>; rel=mailbox, </inbox>; rel="other ${rel}"`
  ])("by a Link header: %s", (link) => {
    expect(inboxIn({ link }, new Uint8Array(), uri, uri.href)).toBe(inbox)
  })

  it.each([
    `<link rel="${rel}" href="/inbox">`,
    `<p>Send me <a rel="ldp:inbox" href="../inbox">news</a>`
  ])("by HTML: %s", (body) => expect(within(body, "text/html")).toBe(inbox))

  it.each([
    [`{"@context":"http://www.w3.org/ns/ldp","@id":"","inbox":"/inbox"}`, uri.href],
    [`{"@id":"${uri}","${rel}":[{"@id":"${inbox}"}]}`, uri.href],
    [`[{"@id":"#other","inbox":"/no"},{"@id":"#me","ldp:inbox":{"id":"/inbox"}}]`, `${uri}#me`],
    [`{"@graph":[{"id":"/else","inbox":"/no"},{"id":"/people/alice","inbox":"/inbox"}]}`, uri.href],
    [`{"inbox":"/inbox"}`, uri.href]
  ])("by JSON-LD: %s", (body, target) => expect(within(body, ld, target)).toBe(inbox))

  it.each([
    ["{\"@id\":\"/else\",\"inbox\":\"/inbox\"}", ld],
    ["{\"inbox\":\"javascript:x\"}", ld],
    ["{\"inbox\":3}", ld],
    ["{\"inbox\":", ld],
    ["null", ld],
    ["{\"inbox\":\"/inbox\"}", "application/json"],
    ["<link rel=inbox href=/inbox>", "text/html"]
  ])("finds none in %s", (body, type) => expect(within(body, type)).toBeUndefined())
})

const written = ({ body, headers }: TextContent): TextContent => ({
  headers: { ...headers, "content-type": ld },
  body: JSON.stringify({ from: body })
})

const content = {
  discovers: true,
  toLinkedData: written,
  headers: { "content-type": "text/xml+rss", "idempotency-key": "k" }
}

const asLinkedData = {
  method: "POST",
  body: "{\"from\":\"<item/>\"}",
  headers: { "content-type": ld, "idempotency-key": "k" }
}

/** An inbox that takes JSON-LD only, and tells so by these headers; `found` answers its GET. */
const inboxOnly = (
  headers: Readonly<Record<string, string>> = {},
  found = 401,
  refusing = 415
): Promise<Receiver> =>
  receiver((request, response) => {
    if (request.method === "GET") return void response.writeHead(found, headers).end()
    const takes = request.headers["content-type"] === ld
    response.writeHead(takes ? 201 : refusing, takes ? { location: "/n/1" } : headers).end()
  })

const methods = ({ came }: Receiver) => came.map(({ method }) => method)

describe("sending (LDN §3.2)", () => {
  it.each(["text/turtle;q=0.5, application/ld+json", "*/*"])(
    "posts JSON-LD at once where Accept-Post is %s",
    async (accepted) => {
      const at = await inboxOnly({ "accept-post": accepted })
      const { outbound, post } = await client({ limits: patient })
      expect(await post(`${at.uri}/inbox`, content))
        .toEqual({ _tag: "Delivered", code: 201, location: `${at.uri}/n/1` })
      expect(methods(at)).toEqual(["POST", "POST"])
      expect(at.came[1]).toMatchObject(asLinkedData)
      expect(outbound.metrics().outcomes).toMatchObject({ Delivered: 1, PermanentFailure: 0 })
    }
  )

  it("tries JSON-LD where a 415 says no more, and the inbox may not be read", async () => {
    const at = await inboxOnly()
    const { post } = await client({ limits: patient })
    expect(await post(`${at.uri}/inbox`, content)).toMatchObject({ _tag: "Delivered", code: 201 })
    expect(methods(at)).toEqual(["POST", "GET", "POST"])
  })

  it("goes to the inbox of the target that takes no posts itself", async () => {
    const at = await inboxOnly()
    const profile = await inboxOnly({ link: `<${at.uri}/inbox>; rel="${rel}"` }, 200, 405)
    const { post } = await client({ limits: patient })
    expect(await post(`${profile.uri}/me`, content)).toMatchObject({ _tag: "Delivered", code: 201 })
    expect(methods(profile)).toEqual(["POST", "GET"])
    expect(profile.came[1]?.headers.accept).toContain(ld)
    expect(at.came).toMatchObject([{ path: "/inbox", ...asLinkedData }])
  })

  it("prefers a mailbox, which takes all of a notification", async () => {
    const mailbox = await answering(202)
    const link = `</inbox>; rel="${rel}", <${mailbox.uri}/box>; rel=mailbox`
    const at = await inboxOnly({ link }, 200)
    const { post } = await client({ limits: patient })
    expect(await post(`${at.uri}/me`, content)).toMatchObject({ _tag: "Delivered", code: 202 })
    expect(mailbox.came).toMatchObject([{ body: "<item/>" }])
  })

  it("sends no JSON-LD where the receiver takes other types only", async () => {
    const at = await inboxOnly({ "accept-post": "text/turtle" })
    const { post } = await client({ limits: patient })
    expect(await post(at.uri, content)).toMatchObject({ _tag: "PermanentFailure", code: 415 })
    expect(methods(at)).toEqual(["POST", "GET"])
  })

  it("sends none where there is none of what is sent, nor to what takes no posts", async () => {
    const { post } = await client({ limits: patient })
    const { toLinkedData: _, ...plain } = content
    const typed = await inboxOnly({ "accept-post": ld })
    expect(await post(typed.uri, plain)).toMatchObject({ _tag: "PermanentFailure", code: 415 })
    const closed = await inboxOnly({ link: `</>; rel="${rel}"` }, 200, 405)
    expect(await post(`${closed.uri}/`, content)).toMatchObject({
      _tag: "PermanentFailure",
      code: 405
    })
    expect(methods(closed)).toEqual(["POST", "GET"])
  })

  it("ends with what the inbox answers: a fault is tried again, a refusal is the end", async () => {
    const { post } = await client({ limits: patient })
    for (const [code, tag] of [[503, "RetryableFailure"], [422, "PermanentFailure"]] as const) {
      const at = await receiver((request, response) => {
        const isLinked = request.headers["content-type"] === ld
        response.writeHead(isLinked ? code : 415, { "accept-post": ld }).end()
      })
      expect(await post(at.uri, content)).toMatchObject({ _tag: tag, code })
    }
  })

  it("goes to no inbox at a forbidden address", async () => {
    const { hits, port } = await guarded()
    const link = `<http://127.0.0.1:${port}/>; rel="${rel}"`
    const at = await receiver((request, response) => {
      response.writeHead(request.method === "POST" ? 405 : 200, { link }).end()
    }, "127.0.0.2")
    const { post } = await client({ allow: ["127.0.0.2"], limits: patient })
    expect(await post(at.uri, content))
      .toEqual({ _tag: "PermanentFailure", problem: notAllowed })
    expect(hits()).toBe(0)
  })
})
