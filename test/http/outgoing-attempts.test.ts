/** The attempts at the recipients of an outgoing notification: what was sent, and the answers. */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { NotificationView, RecipientState,
  RelayAttempt } from "../../actors/notification/index.ts"
import { childOf, childrenOf, type Element, textOf } from "../../http/formats/xml/index.ts"
import { relayPausesFreshMs } from "../../actors/limits.ts"
import { attemptGapMax, rangesOf,
  relayAttemptsOf } from "../../http/resources/outgoing/relay-attempts.ts"
import { nowMs } from "../actors/cells.ts"
import { admin, type OutgoingHarness, startOutgoing } from "./outgoing-harness.ts"
import { type Receiver, startReceiver } from "./receiver.ts"

/** Markup, a bidi override and a control character, as an attacker would answer them. */
const hostile = "<script>alert(1)</script></pre>\u202e\u0007\"'&"

const hiddenText = "The answer is not shown: its address is not public."

let service: OutgoingHarness
let receiver: Receiver
let alice = ""

beforeAll(async () => {
  service = await startOutgoing()
  alice = await service.account("alice")
  receiver = await startReceiver(({ body, path }, response) => {
    const status = Number(path.slice(1, 4))
    if (path.endsWith("/echo")) {
      const [, password = ""] = /<password>(.*)<\/password>/.exec(body) ?? []
      const headers = { "Content-Type": "text/plain", "X-Echo": `got ${password}` }
      response.writeHead(status, headers).end(`${body} ${JSON.stringify({ password })}`)
      return
    }
    if (status === 307) response.writeHead(307, { Location: "/410/turned" }).end()
    else {
      response.writeHead(status, {
        "Content-Type": "text/plain; charset=utf-8",
        "Set-Cookie": "session=of-the-receiver",
        "X-Request-Id": "r7"
      }).end(hostile)
    }
  })
})
afterAll(async () => {
  await service.close()
  await receiver.close()
})

const get = (href: string, accept = "application/xml", basic = admin) =>
  service.send("GET", href, { basic, accept })

/** Sends to these paths of the receiver, or to these URIs; returns its URI when it has ended. */
const sentTo = async (
  to: ReadonlyArray<string>,
  status: string,
  basic = admin
): Promise<string> => {
  const uris = to.map((one) => one.startsWith("/") ? receiver.origin + one : one)
  const posted = await service.post(basic, uris)
  expect(posted.status).toBe(202)
  const href = posted.header("location")
  await service.until(href, basic, status)
  return href
}

const attemptsOf = async (href: string, basic = admin): Promise<ReadonlyArray<Element>> => {
  const answer = await get(`${href}/attempts`, "application/xml", basic)
  expect(answer.status).toBe(200)
  return childrenOf(answer.xml, "attempt")
}

const headersIn = (part: Element | undefined): Readonly<Record<string, string>> =>
  Object.fromEntries(
    childrenOf(part ?? { name: "", attributes: {}, children: [] }, "header")
      .map((header) => [header.attributes["name"] ?? "", textOf(header)])
  )

const textIn = (part: Element | undefined, name: string): string | undefined => {
  const child = part && childOf(part, name)
  return child && textOf(child)
}

describe("GET /outgoing/{account}/{notification}/attempts", () => {
  it("shows each attempt of a failure with both sides, the newest first", async () => {
    const href = await sentTo(["/500/a"], "failed")
    const attempts = await attemptsOf(href)
    expect(attempts.map(({ attributes }) => attributes["number"])).toEqual([
      "5",
      "4",
      "3",
      "2",
      "1"
    ])
    const follows = attempts.map(({ attributes }) => attributes["follows"])
    expect(follows).toEqual(["given-up", "schedule", "schedule", "schedule", "schedule"])
    const [last, before] = attempts
    expect(last?.attributes).toMatchObject({ recipient: `${receiver.origin}/500/a`, code: "500" })
    expect(last?.attributes).not.toHaveProperty("next")
    expect(Date.parse(before?.attributes["next"] ?? "")).not.toBeNaN()
    expect(Date.parse(last?.attributes["at"] ?? "")).not.toBeNaN()
    expect(last?.attributes["duration"]).toMatch(/^\d+$/)
    expect(textIn(last, "problem")).toBe("answered 500")
    const sent = headersIn(childOf(last as Element, "request"))
    const received = receiver.received.findLast(({ path }) => path === "/500/a")
    for (const name of ["idempotency-key", "traceparent", "content-type", "user-agent"]) {
      expect([name, sent[name]]).toEqual([name, received?.headers[name]])
    }
    const answer = childOf(last as Element, "answer")
    expect(headersIn(answer)).toMatchObject({ "x-request-id": "r7" })
    expect(headersIn(answer)).not.toHaveProperty("set-cookie")
    // XML cannot hold the control character: the text is shown as JSON.
    expect(textIn(answer, "body")).toBe(JSON.stringify(hostile))
    const { json, text } = await get(`${href}/attempts`, "application/json")
    expect(json).toMatchObject({ href: `${href}/attempts` })
    expect(JSON.parse(text).attempt[0]).toMatchObject({
      number: "5",
      problem: "answered 500",
      answer: { body: JSON.stringify(hostile) }
    })
    for (const accept of ["application/xml", "application/json", "text/html"]) {
      expect((await get(href, accept)).header("link"))
        .toContain(`<${href}/attempts>; rel="related"`)
    }
  })

  it("shows both sides of a success, and has no request of a local delivery", async () => {
    const missing = `${new URL(await sentTo(["/202/x"], "sent")).origin}/mailboxes/missing`
    const href = await sentTo(["/202/b", missing, "/307/c"], "failed")
    const attempts = await attemptsOf(href)
    const at = (end: string) =>
      attempts.find(({ attributes }) => attributes["recipient"]?.endsWith(end))
    const [success, local, turned] = [at("/b"), at("/missing"), at("/c")]
    expect(success?.attributes).toMatchObject({ number: "1", code: "202", follows: "done" })
    expect(success?.attributes["duration"]).toMatch(/^\d+$/)
    const sent = headersIn(childOf(success as Element, "request"))
    const received = receiver.received.findLast(({ path }) => path === "/202/b")
    for (const name of ["idempotency-key", "traceparent", "content-type", "user-agent"]) {
      expect([name, sent[name]]).toEqual([name, received?.headers[name]])
    }
    const answer = childOf(success as Element, "answer")
    expect(headersIn(answer)).toMatchObject({ "x-request-id": "r7" })
    expect(headersIn(answer)).not.toHaveProperty("set-cookie")
    expect(textIn(answer, "body")).toBe(JSON.stringify(hostile))
    expect(success).not.toHaveProperty("attributes.problem")
    expect(local?.attributes).toMatchObject({ code: "404", follows: "permanent" })
    expect(local?.attributes["duration"]).toMatch(/^\d+$/)
    expect(local?.children.flatMap((child) => typeof child === "string" ? [] : [child.name]))
      .toEqual(["problem"])
    expect(turned?.attributes).toMatchObject({ code: "410", redirects: "1" })
    const page = await get(`${href}/attempts`, "text/html")
    expect(page.text).toContain("The mailbox is at this service: there was no request.")
    expect(page.text).not.toContain("not kept.</p>")
  })

  it("shows hostile text as text, and is linked from the page of the notification", async () => {
    const href = await sentTo(["/410/hostile"], "failed")
    const page = await get(`${href}/attempts`, "text/html")
    expect(page.status).toBe(200)
    expect(page.text).not.toContain("<script>alert")
    expect(page.text).toContain("&lt;script&gt;alert(1)&lt;/script&gt;&lt;/pre&gt;")
    expect(page.text).not.toContain("\u0007")
    expect(page.text).toContain("id=\"recipient-1\"")
    // The code is said once, by the badge.
    expect(page.text).toContain("✗ 410</span>")
    expect(page.text).not.toContain("answered 410")
    const path = new URL(href).pathname
    const status = await get(href, "text/html")
    expect(status.text).toContain(`<a href="${path}/attempts#recipient-1">1 attempt</a>`)
    expect(status.text).not.toContain("alert(1)")
  })

  it.each([
    ["/410/echo", "failed", true],
    // Of a success with a password nothing of the text is kept.
    ["/202/echo", "sent", false]
  ])("shows no message password that the answer of %s repeats", async (path, status, isKept) => {
    const password = "<password>top-secret-7&amp;7</password>"
    const to = `<to>${receiver.origin}${path}</to>`
    const item = `<item><description>d</description><url>http://a.test/</url>${password}</item>`
    const body = `<notification>${to}${item}</notification>`
    const posted = await service.send("POST", "/outgoing/admin", { basic: admin, body })
    const href = posted.header("location")
    await service.until(href, admin, status)
    const { text } = await get(`${href}/attempts`)
    expect(text).toContain("got …")
    expect(text.includes("&lt;password&gt;…&lt;/password&gt;")).toBe(isKept)
    expect(text).not.toContain("top-secret")
  })

  it.each([
    ["410", "failed", "permanent"],
    ["202", "sent", "done"]
  ])("shows a private address's %s to nobody but an admin whose own it is", async (...of) => {
    const [code, status, follows] = of
    const href = await sentTo([`/${code}/inside`], status, alice)
    // Neither to the account, which is no admin, nor to the admin, who has not sent it.
    for (const basic of [alice, admin]) {
      const [attempt] = await attemptsOf(href, basic)
      expect(attempt?.attributes).toMatchObject({ code, follows })
      expect(headersIn(childOf(attempt as Element, "request"))).toHaveProperty("idempotency-key")
      expect(childOf(attempt as Element, "answer")).toBeUndefined()
      for (const accept of ["text/html", "application/json", "application/xml"]) {
        const { status, text } = await get(`${href}/attempts`, accept, basic)
        expect(status).toBe(200)
        expect(text).not.toContain("alert(1)")
        expect(text).not.toContain("x-request-id")
      }
      expect((await get(`${href}/attempts`, "text/html", basic)).text).toContain(hiddenText)
    }
  })

  it("is for those who may read the status, and ends with it", async () => {
    const href = await sentTo(["/410/guarded"], "failed", alice)
    const uri = `${href}/attempts`
    const bob = await service.account("bob")
    expect((await service.send("GET", uri)).status).toBe(401)
    expect((await get(uri, "application/xml", bob)).status).toBe(403)
    const id = href.split("/").at(-1)
    expect((await get(`/outgoing/bob/${id}/attempts`, "application/xml", bob)).status).toBe(404)
    expect((await service.send("POST", uri, { basic: alice })).status).toBe(405)
    expect((await service.send("DELETE", href, { basic: alice })).status).toBe(204)
    expect((await get(uri, "application/xml", alice)).status).toBe(410)
  })

  it("says how many are not kept, after a follow-up has replaced a local delivery", async () => {
    await service.send("POST", "/mailboxes", { basic: admin, headers: { Slug: "first" } })
    const href = await sentTo([`${service.base}/mailboxes/first`], "sent")
    const body = "<notification><item><description>d</description><url>http://a.test/</url>" +
      "</item></notification>"
    const replaced = await service.send("POST", `${href}/replacement`, { basic: admin, body })
    expect(replaced.status).toBe(202)
    await service.until(href, admin, "sent")
    const { xml } = await get(`${href}/attempts`)
    expect(xml.attributes["dropped"]).toBe("1")
    expect(childrenOf(xml, "attempt").map(({ attributes }) => attributes["number"])).toEqual(["2"])
    expect((await get(`${href}/attempts`, "text/html")).text)
      .toContain("<p>1 earlier attempt is not kept.</p>")
  })
})

/** The service lists the numbers of the attempts, the newest first. */
const numbersOf = async (href: string): Promise<ReadonlyArray<number>> =>
  (await attemptsOf(href, alice)).map(({ attributes }) => Number(attributes["number"]))

const fromTo = (last: number, first: number): ReadonlyArray<number> =>
  Array.from({ length: last - first + 1 }, (_, at) => last - at)

describe("the attempts of a notification that is retried or paused", () => {
  const setPauses = async (status: "active" | "paused") => {
    const body = `<pauses status="${status}"/>`
    const answer = await service.send("PUT", "/outgoing/alice/pauses", { basic: alice, body })
    expect(answer.status).toBe(200)
    // Until then another node may begin an attempt.
    if (service.nodes.length > 1) {
      await new Promise((resolve) => setTimeout(resolve, relayPausesFreshMs))
    }
  }

  const retry = async (href: string, ...to: ReadonlyArray<string>) => {
    const named = to.map((path) => `<to>${receiver.origin}${path}</to>`).join("")
    const body = to.length === 0 ? {} : { body: `<retry>${named}</retry>` }
    const answer = await service.send("POST", `${href}/retry`, { basic: alice, ...body })
    expect(answer.status).toBe(202)
  }

  /** Waits until a pause keeps a recipient back. */
  const untilHeld = (href: string) =>
    expect.poll(async () => (await get(href, "application/xml", alice)).text, { timeout: 10_000 })
      .toContain(" paused=")

  it("stay while a pause keeps it back, and go on with their numbers when it ends", async () => {
    const href = await sentTo(["/500/paused"], "failed", alice)
    await setPauses("paused")
    await retry(href)
    await untilHeld(href)
    // What the pause keeps back was no attempt.
    expect(await numbersOf(href)).toEqual(fromTo(5, 1))
    const page = await get(href, "text/html", alice)
    const path = new URL(href).pathname
    expect(page.text).toContain(`<a href="${path}/attempts#recipient-1">5 attempts</a>`)
    expect(page.text).toContain(" · paused since ")
    await setPauses("active")
    await service.until(href, alice, "failed")
    expect(await numbersOf(href)).toEqual(fromTo(10, 1))
  })

  it("show that a recipient has it that gets it again", async () => {
    const href = await sentTo(["/202/again", "/202/once"], "sent", alice)
    await setPauses("paused")
    await retry(href, "/202/again")
    await untilHeld(href)
    const before = await attemptsOf(href, alice)
    for (const attempt of before) expect(childOf(attempt, "request")).toBeDefined()
    expect(
      before.map(({ attributes: { code, follows, next, number } }) => [number, code, follows, next])
    ).toEqual([["1", "202", "done", undefined], ["1", "202", "done", undefined]])
    await setPauses("active")
    await service.until(href, alice, "sent")
    expect(await numbersOf(href)).toEqual([2, 1, 1])
    expect((await get(`${href}/attempts`, "application/xml", alice)).xml.attributes)
      .not.toHaveProperty("dropped")
  })

  it("go on with their numbers for a recipient that is named, and for no other", async () => {
    const href = await sentTo(["/500/named", "/410/other"], "failed", alice)
    await retry(href, "/500/named")
    await service.until(href, alice, "failed")
    const attempts = await attemptsOf(href, alice)
    const of = (end: string) =>
      attempts.filter(({ attributes }) => attributes["recipient"]?.endsWith(end))
        .map(({ attributes }) => Number(attributes["number"]))
    expect([of("/named"), of("/other")]).toEqual([fromTo(10, 1), [1]])
  })
})

describe("what is known of attempts", () => {
  const recipient: RecipientState = {
    to: "https://example.org/0",
    status: "failed",
    attempts: 3,
    tries: 3,
    lastAtMs: nowMs,
    tookMs: 20,
    code: 503,
    problem: "answered 503"
  }

  const shown = (recipients: NotificationView["recipients"], kept: ReadonlyArray<RelayAttempt>) =>
    relayAttemptsOf({ recipients }, kept)

  const keptAt = (attempt: number): RelayAttempt => ({
    recipient: 0,
    attempt,
    exchange: { beganAtMs: nowMs - 1_000 + attempt, durationMs: 5, requestHeaders: [["a", "b"]] },
    problem: "no answer in time",
    follows: "schedule",
    nextAtMs: nowMs
  })

  it("is the last one of a recipient by its state, if the log has it no more", () => {
    const { attempts, dropped } = shown([recipient], [])
    expect(dropped).toBe(2)
    expect(attempts).toEqual([{
      recipient: 0,
      to: recipient.to,
      attempt: 3,
      exchange: { beganAtMs: nowMs - 20, durationMs: 20, requestHeaders: [], code: 503 },
      problem: "answered 503",
      follows: "given-up",
      isBrief: true,
      isLast: true
    }])
  })

  it("is what the log has, and the last one only once", () => {
    const { attempts, dropped } = shown([recipient], [keptAt(2), keptAt(3)])
    expect(dropped).toBe(1)
    expect(attempts.map(({ attempt, isBrief, isLast }) => [attempt, isBrief, isLast]))
      .toEqual([[3, undefined, true], [2, undefined, false]])
    const retried = { ...recipient, status: "retry", nextAtMs: nowMs + 5 } as const
    expect(shown([retried], []).attempts).toMatchObject([{ follows: "schedule" }])
  })

  it("is nothing before the first attempt, and after a follow-up has reset its result", () => {
    const { code: _, problem: __, tookMs: ___, ...reset } = recipient
    expect(shown([{ ...reset, status: "waiting" }], [])).toEqual({ attempts: [], dropped: 3 })
    const waiting = { to: recipient.to, status: "waiting", attempts: 0, tries: 0 } as const
    expect(shown([waiting], [])).toEqual({ attempts: [], dropped: 0 })
    // An attempt has ended between the reads of the recipients and of the log.
    expect(shown([waiting], [keptAt(1)])).toMatchObject({ dropped: 0 })
  })

  it("is the success of a recipient that gets it again, until its next attempt", () => {
    const { problem: _, ...had } = recipient
    const again = { ...had, status: "retry", code: 202, tries: 0, nextAtMs: nowMs } as const
    const [attempt] = shown([again], []).attempts
    expect(attempt).toMatchObject({ attempt: 3, follows: "done", exchange: { code: 202 } })
    expect(attempt).not.toHaveProperty("nextAtMs")
  })

  it("of an older node has no duration", () => {
    const { tookMs: _, ...older } = recipient
    const [attempt] = shown([{ ...older, status: "success", attempts: 1 }], []).attempts
    expect(attempt).toMatchObject({ follows: "done", exchange: { beganAtMs: nowMs } })
    expect(attempt?.exchange).not.toHaveProperty("durationMs")
  })

  it("is read in few ranges, which have no document", () => {
    expect(rangesOf([], [])).toEqual([])
    expect(rangesOf([2, 4, 5, 5 + attemptGapMax, 6 + 2 * attemptGapMax], []))
      .toEqual([{ first: 2, last: 5 + attemptGapMax }, {
        first: 6 + 2 * attemptGapMax,
        last: 6 + 2 * attemptGapMax
      }])
    expect(rangesOf([2, 4, 6], [3])).toEqual([{ first: 2, last: 2 }, { first: 4, last: 6 }])
  })
})
