/** Sending by an outgoing mailbox (protocol §1.3, A5): each row by status, fields and body. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { childOf, childrenOf } from "../../http/formats/xml/index.ts"
import { originRecipientsMax } from "../../http/limits.ts"
import { admin, each, outgoing, type OutgoingHarness, type Receiver, recipients, startOutgoing,
  startReceiver } from "./outgoing-harness.ts"

const formType = "application/x-www-form-urlencoded"

let service: OutgoingHarness
let receiver: Receiver
let alice = ""
let bob = ""

beforeAll(async () => {
  service = await startOutgoing()
  alice = await service.account("alice")
  bob = await service.account("bob")
})
afterAll(() => service.close())
beforeEach(async () => {
  receiver = await startReceiver()
  return () => receiver.close()
})

const mailbox = (status = 202, name = "inbox") => `${receiver.base}/${status}/${name}`
const relayed = (of: Receiver, at = 0): string => of.received[at]?.body ?? ""

describe("A5 POST /outgoing/{account}", () => {
  it("answers 202, Location and the status; the recipient gets it without to", async () => {
    const posted = await service.post(alice, [mailbox()])
    expect(posted.status).toBe(202)
    const href = posted.header("location")
    expect(href).toMatch(new RegExp(`^${service.base}/outgoing/alice/[A-Za-z0-9_-]{22}$`))
    expect([posted.xml.name, posted.xml.attributes["href"]]).toEqual(["notification", href])
    expect(posted.header("notification-status")).toBe("waiting; waiting=1")
    expect(posted.header("cache-control")).toBe("private, no-cache")
    const sent = await service.until(href, alice, "sent")
    expect(each(sent, "status")).toEqual(["success"])
    expect(each(sent, "attempts")).toEqual(["1"])
    expect(each(sent, "code")).toEqual(["202"])
    expect(each(sent, "location")).toEqual([`${mailbox()}/stored`])
    expect(each(sent, "next")).toEqual([undefined])
    expect(sent.xml.attributes["time"]).toBe(posted.xml.attributes["time"])
    expect(relayed(receiver)).toBe(
      "<notification><item><description>d</description><url>http://example.org/m</url></item>" +
        "</notification>"
    )
    const headers = receiver.received[0]?.headers
    expect(headers?.["idempotency-key"]).toBeDefined()
    expect(headers?.["traceparent"]).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/)
  })

  it("is 413 for a document that grows too large when it is stored", async () => {
    const posted = await service.send("POST", "/outgoing/alice", {
      basic: alice,
      type: "application/json",
      body: JSON.stringify({
        to: mailbox(),
        item: { description: "&".repeat(250_000), url: "urn:x" }
      })
    })
    expect(posted.status).toBe(413)
  })

  it("relays once to each of 1,000 recipients that answer with long Locations", async () => {
    const receivers = await Promise.all(Array.from({ length: 10 }, () => startReceiver()))
    const to = receivers.flatMap(({ base }) =>
      Array.from({ length: 100 }, (_, at) => `${base}/202/${at}/long`)
    )
    const posted = await service.post(alice, to)
    expect(posted.status).toBe(202)
    const sent = await service.until(posted.header("location"), alice, "sent")
    expect(each(sent, "href")).toEqual(to)
    expect(new Set(each(sent, "attempts"))).toEqual(new Set(["1"]))
    for (const location of each(sent, "location")) expect(location?.length).toBeGreaterThan(1_100)
    for (const one of receivers) {
      expect(new Set(one.received.map(({ path }) => path)).size).toBe(100)
      expect(one.received).toHaveLength(100)
      await one.close()
    }
    // Its log has more items than one decision removes.
    expect((await service.send("DELETE", posted.header("location"), { basic: alice })).status)
      .toBe(204)
  }, 120_000)

  it("relays to a mailbox of this service and to several, a repeated one once", async () => {
    await service.send("POST", "/mailboxes", { basic: bob, headers: { Slug: "bobs" } })
    const own = `${service.base}/mailboxes/bobs`
    const to = [own, mailbox(), mailbox(202, "other"), mailbox().replace("http", "HTTP"), own]
    const posted = await service.post(alice, to)
    expect(each(posted, "href")).toEqual(to.slice(0, 3))
    const sent = await service.until(posted.header("location"), alice, "sent")
    expect(sent.header("notification-status")).toBe("sent; success=3")
    const listed = await service.send("GET", own, { basic: bob })
    expect(childrenOf(listed.xml, "notification")).toHaveLength(1)
    expect(each(sent, "location")[0]).toBe(
      childOf(listed.xml, "notification")?.attributes["href"]
    )
  })

  it("sends JSON-LD to an inbox that accepts nothing else, with the same key", async () => {
    const inbox = `${receiver.base}/inbox/1`
    const posted = await service.post(alice, [inbox])
    const sent = await service.until(posted.header("location"), alice, "sent")
    expect(each(sent, "location")).toEqual([`${inbox}/stored`])
    const [refused, taken] = receiver.received
    expect(refused?.headers["content-type"]).toBe("text/xml+rss; charset=utf-8")
    expect(taken?.headers).toMatchObject({
      "content-type": "application/ld+json",
      "idempotency-key": refused?.headers["idempotency-key"],
      traceparent: expect.any(String)
    })
    expect(JSON.parse(taken?.body ?? "")).toEqual({
      "@context": "https://www.w3.org/ns/activitystreams",
      type: "Announce",
      summary: "d",
      object: "http://example.org/m",
      target: inbox
    })
  })

  it("is for the account alone: 401 with a challenge, 403 for others and admins", async () => {
    const post = (path: string, basic?: string) =>
      service.send("POST", path, {
        body: outgoing([mailbox()]),
        ...basic === undefined ? {} : { basic }
      })
    const nobody = await post("/outgoing/alice")
    expect(nobody.status).toBe(401)
    expect(nobody.header("www-authenticate")).toMatch(/Basic realm="restante".*Bearer/)
    expect((await post("/outgoing/alice", "alice:wrong")).status).toBe(401)
    expect((await post("/outgoing/alice", bob)).status).toBe(403)
    expect((await post("/outgoing/nobody", bob)).status).toBe(403)
    expect((await post("/outgoing/alice", admin)).status).toBe(403)
    expect((await post("/outgoing/alice~x", alice)).status).toBe(404)
    expect(receiver.received).toEqual([])
  })

  it("accepts JSON and forms; a browser is redirected to the notification's page", async () => {
    const item = { description: "json", url: "http://example.org/m" }
    const json = await service.post(alice, [], {
      type: "application/json",
      body: JSON.stringify({ to: [mailbox(202, "a"), mailbox(202, "b")], from: true, item }),
      accept: "application/json"
    })
    expect(json.status).toBe(202)
    expect(json.json).toMatchObject({ status: "waiting", recipient: [{}, {}] })
    await service.until(json.header("location"), alice, "sent")
    expect(relayed(receiver)).toContain(`<from>${service.base}/outgoing/alice</from>`)
    const fields = new URLSearchParams({
      to: `${mailbox(202, "c")}\r\n\r\n ${mailbox(202, "d")} `,
      description: "form",
      url: "",
      content: "Hello\r\nthere"
    })
    fields.append("to", mailbox(202, "e"))
    const body = fields.toString()
    const form = await service.post(alice, [], { type: formType, body })
    expect(each(form, "href")).toEqual(["c", "d", "e"].map((name) => mailbox(202, name)))
    const page = await service.post(alice, [], { type: formType, body, accept: "text/html" })
    expect([page.status, page.text]).toEqual([303, ""])
    const sent = await service.until(page.header("location"), alice, "sent")
    expect(recipients(sent)).toHaveLength(3)
  })

  it("takes the name of a mailbox of this service in a form, and nowhere else", async () => {
    const body = "<mailbox><name>by-name</name></mailbox>"
    const opened = await service.send("POST", "/mailboxes", { basic: alice, body })
    const own = opened.header("location")
    const fields = (to: string) =>
      new URLSearchParams({ to, description: "by name", url: "http://example.org/m" }).toString()
    const form = { type: formType, body: fields(`by-name\r\n${own}`) }
    const sent = await service.post(alice, [], form)
    expect(each(sent, "href")).toEqual([own])
    const href = sent.header("location")
    await service.until(href, alice, "sent")
    const replay = await service.send("POST", `${href}/retry`, {
      basic: alice,
      type: formType,
      body: "to=by-name"
    })
    expect(replay.status).toBe(202)
    const document = await service.post(alice, ["by-name"])
    expect(document.child("detail")).toBe("to number 1 must be an absolute http or https URI")
    const named = `<retry><to>by-name</to></retry>`
    expect((await service.send("POST", `${href}/retry`, { basic: alice, body: named })).status)
      .toBe(422)
    const wrong = { type: formType, body: fields("by-name\r\nBy Name"), accept: "text/html" }
    const page = await service.post(alice, [], wrong)
    expect(page.status).toBe(422)
    expect(page.text).toContain("“To” number 2 ")
    expect(page.text).toMatch(/<textarea [^>]*name="to"[^>]*>\s*by-name\s+By Name<\/textarea>/)
  })

  it("publishes inlined content for the sender, under the message password", async () => {
    const password = "a-password-of-the-message"
    const body = `<notification from="true"><to>${mailbox()}</to><item><description>d` +
      `</description><url/><password>${password}</password><from>http://old.example/</from>` +
      "<content type=\"text/plain\">the message</content></item></notification>"
    const posted = await service.post(alice, [], { body })
    await service.until(posted.header("location"), alice, "sent")
    const text = relayed(receiver)
    expect(text).not.toContain("<content")
    expect(text).toContain(`<from>${service.base}/outgoing/alice</from>`)
    expect(text).not.toContain("old.example")
    const url = /<url>([^<]+)<\/url>/.exec(text)?.[1] ?? ""
    expect((await service.send("GET", url)).status).toBe(401)
    const headers = { "Message-Password": password }
    expect((await service.send("GET", url, { headers })).text).toBe("the message")
    expect((await service.send("DELETE", url, { basic: bob })).status).not.toBe(204)
    expect((await service.send("DELETE", url, { basic: alice })).status).toBe(204)
  })

  it("relays unknown elements, and the sender's from when it is not requested", async () => {
    const body = `<notification xmlns:x="urn:x" from="false"><to>${mailbox()}</to><item>` +
      "<description>d &amp; e</description><url>http://example.org/m</url>" +
      "<from>http://old.example/</from><x:y z=\"1\"/></item><x:beside/></notification>"
    const posted = await service.post(alice, [], { body })
    await service.until(posted.header("location"), alice, "sent")
    expect(relayed(receiver)).toBe(
      "<notification><item xmlns:x=\"urn:x\"><description>d &amp; e</description>" +
        "<url>http://example.org/m</url><from>http://old.example/</from><x:y z=\"1\"/></item>" +
        "<x:beside xmlns:x=\"urn:x\"/></notification>"
    )
  })

  it("continues the trace of its request", async () => {
    const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    const sendWith = async (traceparent: string) => {
      const posted = await service.post(alice, [mailbox()], { headers: { traceparent } })
      await service.until(posted.header("location"), alice, "sent")
      return receiver.received.at(-1)?.headers["traceparent"]
    }
    const whole = `00-${trace}-00f067aa0ba902b7-01`
    const relayedAs = String(await sendWith(whole))
    expect(relayedAs.split("-")[1]).toBe(trace)
    expect(relayedAs).not.toBe(whole)
    for (
      const bad of ["00-x-y-01", `ff-${trace}-00f067aa0ba902b7-01`, `00-${"0".repeat(32)}-1-1`]
    ) {
      expect(String(await sendWith(bad)).split("-")[1]).toMatch(/^(?!4bf92f|0{32})[0-9a-f]{32}$/)
    }
  })

  it.each(
    [
      ["no to", []],
      ["an empty one", [""]],
      ["a relative one", ["/mailboxes/bob"]],
      ["another scheme", ["mailto:bob@example.org"]],
      ["no host", ["http://"]],
      ["a bad port", ["http://example.org:99999/"]],
      ["credentials", ["http://bob:secret@example.org/"]],
      ["one that is too long", [`http://example.org/${"x".repeat(2048)}`]]
    ] as const
  )("422 for %s", async (_, to) => {
    const refused = await service.post(alice, to)
    expect([refused.status, refused.header("content-type")]).toEqual([
      422,
      "application/problem+xml; charset=utf-8"
    ])
    expect(refused.text).not.toContain("secret")
  })

  it("422 names the recipient, 1,000 are enough, and other bodies are 400, 413, 415", async () => {
    const wrong = await service.post(alice, [mailbox(), mailbox(202, "b"), "ftp://example.org/"])
    expect([wrong.status, wrong.child("detail")]).toEqual([
      422,
      "to number 3 must be an absolute http or https URI"
    ])
    const spaced = await service.post(alice, [mailbox(), "http://example.org/a b"])
    expect([spaced.status, spaced.child("detail")]).toEqual([422, "to number 2 is not a URI"])
    const many = Array.from({ length: 1001 }, () => mailbox())
    const tooMany = await service.post(alice, many)
    expect([tooMany.status, tooMany.child("rule")]).toEqual([422, "recipients"])
    expect((await service.post(alice, many.slice(1))).status).toBe(202)
    const status = async (body: string, type = "application/xml") =>
      (await service.post(alice, [], { body, type })).status
    expect(await status("<notification>")).toBe(400)
    expect(await status("{", "application/json")).toBe(400)
    expect(await status("<other/>")).toBe(422)
    expect(await status(`<notification><to>${mailbox()}</to></notification>`)).toBe(422)
    expect(await status(`to=${encodeURIComponent(mailbox())}&url=http://a/`, formType)).toBe(422)
    expect(await status("text", "text/plain")).toBe(415)
    expect(await status(outgoing([mailbox()], "x".repeat(300_000)))).toBe(413)
  })

  it("has at most 100 recipients at one foreign origin", async () => {
    const at = (base: string, count: number) =>
      Array.from({ length: count }, (_, n) => `${base}/202/${n}`)
    const refused = await service.post(alice, [
      ...at(receiver.base, originRecipientsMax + 1),
      ...at("http://other.example", 3)
    ])
    expect([refused.status, refused.child("rule"), refused.child("detail")]).toEqual([
      422,
      "to",
      `101 recipients are at ${receiver.base}, at most 100 may be: leave some out, or let the ` +
      "operator name it in FANOUT_ALLOW"
    ])
    // Recipients of this service, and as many as may be elsewhere.
    const sent = await service.post(alice, [
      ...at(receiver.base, originRecipientsMax),
      ...at(`${service.base}/mailboxes`, originRecipientsMax + 1)
    ])
    expect(sent.status).toBe(202)
    const open = await startOutgoing({ fanOutAllow: [receiver.base] })
    const carol = await open.account("carol")
    const many = at(receiver.base, originRecipientsMax + 1)
    expect((await open.post(carol, many)).status).toBe(202)
    await open.close()
  })

  it("queues once for one Idempotency-Key", async () => {
    const headers = { "Idempotency-Key": "once" }
    const first = await service.post(alice, [mailbox()], { headers })
    const repeated = await service.post(alice, [mailbox()], { headers })
    expect([first.status, repeated.status]).toEqual([202, 202])
    expect(repeated.header("location")).toBe(first.header("location"))
    await service.until(first.header("location"), alice, "sent")
    expect(receiver.received).toHaveLength(1)
    const other = await service.post(alice, [mailbox(202, "b")], { headers })
    expect(other.status).toBe(422)
    const noted = service.service.records.range("outgoing-keys", { limit: 10 })
    expect(await service.run(noted)).toEqual([])
  })
})
