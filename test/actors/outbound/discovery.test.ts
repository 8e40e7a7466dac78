/** Mailboxes that are found by rel=mailbox (protocol §1.2). */
import { Effect } from "effect"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { mailboxIn } from "../../../actors/outbound/discovery.ts"
import type { DeliveryOutcome, TextContent } from "../../../actors/outbound/protocol.ts"
import { notAllowed } from "../../../actors/outbound/problems.ts"
import { answering, client, guarded, receiver } from "./rig.ts"

const uri = new URL("https://example.com/people/alice")

const box = "https://example.com/box"

const linked = (link: string | ReadonlyArray<string>) => mailboxIn({ link }, new Uint8Array(), uri)

const within = (html: string, type = "text/html; charset=utf-8") =>
  mailboxIn({ "content-type": type }, Buffer.from(html), uri)

describe("a Link header", () => {
  const found = [
    "</box>; rel=mailbox",
    "</box>; rel=\"mailbox\"",
    "</box>;REL=MAILBOX",
    "</box> ; rel = \"other Mailbox\"",
    "</other>; rel=other, </box>; rel=mailbox",
    "</a,b>; title=\"x, <y>; rel=mailbox\", </box>; rel=mailbox",
    "</a>; title=\"\\\", </no>; rel=mailbox\"; rel=a, </box>; rel=mailbox",
    "</box>; rel=mailbox; rel=other",
    "</no>; rel=mailbox; anchor=\"/x\", </box>; rel=mailbox",
    "junk, </box>; rel=mailbox",
    ",, </box>; ; rel=mailbox"
  ]
  it.each(found)("%s", (header) => expect(linked(header)).toBe(box))

  const none = [
    "",
    "</box>",
    "</box>; rel=mailboxes",
    "</box>; rel=other; rel=mailbox",
    "<ftp://a/>; rel=mailbox",
    "<http://u:p@a/>; rel=mailbox",
    "</box; rel=mailbox",
    "/box; rel=mailbox",
    "<"
  ]
  it.each(none)("%s has none", (header) => expect(linked(header)).toBeUndefined())

  it("may be sent more than once", () => {
    expect(linked(["</a>; rel=a", "</box>; rel=mailbox"])).toBe(box)
  })
})

describe("a document", () => {
  const found = [
    "<link rel=mailbox href=/box>",
    "<LINK HREF='/box' REL='x mailbox'/>",
    "<!doctype html><html><head><title><link rel=mailbox href=/no></title><link href=\"/box\" " +
    "rel=\"mailbox\">",
    "<a rel=mailbox href=/no></a><link rel=mailbox href=/box>",
    "<a rel=mailbox href=/box><a rel=mailbox href=/no>",
    "<!-- <link rel=mailbox href=/no> --><link rel=mailbox href=/box>",
    "<script>\"<link rel=mailbox href=/no>\"</SCRIPT><link rel=mailbox href=/box>",
    "<base href=https://example.com/x/><link rel=mailbox href=../box>",
    "<link rel=mailbox href=\"&#47;b&#x6f;x\">",
    "<p a=b c=\"d>\" e><link rel=mailbox href=' /box '>",
    "< link rel=mailbox href=/no><link rel=mailbox href=/box>"
  ]
  it.each(found)("%s", (html) => expect(within(html)).toBe(box))

  const none = [
    "",
    "<",
    "<link",
    "<link rel=mailbox>",
    "<link rel=mailbox href=javascript:x>",
    "<!-- <link rel=mailbox href=/no>",
    "<script><link rel=mailbox href=/no>",
    "<p rel=mailbox href=/no>",
    "</link rel=mailbox href=/no>"
  ]
  it.each(none)("%j has none", (html) => expect(within(html)).toBeUndefined())

  it("of another type has none", () => {
    expect(within("<link rel=mailbox href=/box>", "text/plain")).toBeUndefined()
    expect(within("<link rel=mailbox href=/box>", "application/xhtml+xml")).toBe(box)
  })

  it("of any kind is read to its end", () => {
    const bit = fc.constantFrom(
      ..."<>/=\"'!-&;#x, lnkreaboxmh\0é".split(""),
      "<link ",
      "rel=mailbox"
    )
    fc.assert(fc.property(fc.array(bit, { maxLength: 200 }), (bits) => {
      within(bits.join(""))
      linked(bits.join(""))
    }))
  })
})

describe("a post", () => {
  const discovers = true

  it.each([405, 415])("that is answered %d goes to the mailbox of the page", async (code) => {
    const mailbox = await answering(202, { location: "/stored" })
    const at = await receiver((request, response) => {
      if (request.method === "POST") return void response.writeHead(code).end()
      response.writeHead(200, { "content-type": "text/html" })
        .end(`<link rel=mailbox href="${mailbox.uri}/box">`)
    })
    const { outbound, post } = await client()
    expect(await post(`${at.uri}/page`, { discovers, headers: { "idempotency-key": "k" } }))
      .toEqual({ _tag: "Delivered", code: 202, location: `${mailbox.uri}/stored` })
    expect(at.came.map(({ method, path }) => `${method} ${path}`))
      .toEqual(["POST /page", "GET /page"])
    expect(at.came[1]?.headers.accept).toMatch(/^text\/html/)
    expect(mailbox.came).toMatchObject([
      { method: "POST", path: "/box", body: "<item/>", headers: { "idempotency-key": "k" } }
    ])
    expect(outbound.metrics().outcomes).toMatchObject({ Delivered: 1, PermanentFailure: 0 })
  })

  it("goes to the mailbox of a Link header, and discovers no further", async () => {
    const mailbox = await answering(405, { link: "</other>; rel=mailbox" })
    const at = await receiver((request, response) => {
      request.method === "POST"
        ? response.writeHead(405).end()
        : response.writeHead(200, { link: `<${mailbox.uri}>; rel=mailbox` }).end()
    })
    const { post } = await client()
    expect(await post(at.uri, { discovers })).toMatchObject({ _tag: "PermanentFailure", code: 405 })
    expect(mailbox.came).toHaveLength(1)
  })

  it.each(["mailbox", "\"http://www.w3.org/ns/ldp#inbox\""])(
    "is handed over to what rel=%s leads to when that is at home",
    async (rel) => {
      const home = await answering(202)
      const at = await receiver((request, response) => {
        request.method === "POST"
          ? response.writeHead(405).end()
          : response.writeHead(200, { link: `<${home.uri}/box>; rel=${rel}` }).end()
      })
      const taken: Array<string> = []
      const deliverLocally = (uri: string) => {
        if (!uri.startsWith(home.uri)) return
        return Effect.sync((): DeliveryOutcome => {
          taken.push(uri)
          return { _tag: "Delivered", code: 202, location: "http://home/stored" }
        })
      }
      const toLinkedData = (content: TextContent) => content
      const { post } = await client()
      expect(await post(at.uri, { discovers, toLinkedData, deliverLocally }))
        .toEqual({ _tag: "Delivered", code: 202, location: "http://home/stored" })
      expect([taken, home.came]).toEqual([[`${home.uri}/box`], []])
      expect(await post(home.uri, { discovers, deliverLocally })).toMatchObject({
        _tag: "Delivered"
      })
      expect([taken.length, home.came.length]).toEqual([1, 1])
    }
  )

  it("does not discover unless it is asked to", async () => {
    const at = await answering(405, { link: "</box>; rel=mailbox" })
    const { post } = await client()
    expect(await post(at.uri)).toMatchObject({ _tag: "PermanentFailure", code: 405 })
    expect(at.came).toHaveLength(1)
  })

  it("is what it was without a mailbox, or with the same one", async () => {
    const { post } = await client()
    for (const link of ["</box>; rel=other", "</>; rel=mailbox"]) {
      const at = await receiver((request, response) => {
        response.writeHead(request.method === "POST" ? 415 : 200, { link }).end()
      })
      expect(await post(`${at.uri}/`, { discovers })).toMatchObject({
        _tag: "PermanentFailure",
        code: 415
      })
      expect(at.came).toHaveLength(2)
    }
  })

  it("goes to no forbidden address", async () => {
    const { hits, port } = await guarded()
    const at = await receiver((request, response) => {
      request.method === "POST"
        ? response.writeHead(405).end()
        : response.writeHead(200, { link: `<http://127.0.0.1:${port}/>; rel=mailbox` }).end()
    }, "127.0.0.2")
    const { post } = await client({ allow: ["127.0.0.2"] })
    expect(await post(at.uri, { discovers })).toEqual({
      _tag: "PermanentFailure",
      problem: notAllowed
    })
    expect(hits()).toBe(0)
  })

  it("is tried again when the page cannot be had", async () => {
    const at = await receiver((request, response) => {
      response.writeHead(request.method === "POST" ? 405 : 503, { "retry-after": "3" }).end()
    })
    const { post } = await client()
    expect(await post(at.uri, { discovers })).toEqual({
      _tag: "RetryableFailure",
      code: 503,
      problem: "answered 503",
      retryAfterMs: 3_000
    })
  })
})
